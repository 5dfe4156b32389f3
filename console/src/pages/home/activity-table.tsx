import { Group } from '@mantine/core'
import { useMemo } from 'react'
import type { Activity } from '../../../../src/contract/console/activity.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { TextLink } from '../../components/link.js'
import { EmptyState } from '../../components/states.js'
import { timeOfDay } from '../../lib/format.js'
import { busySteps, CHARTS, countText, startOf, timesOf } from './charts.js'

const PARTS = CHARTS.flatMap(({ parts }) => parts)

/** The numbers of all charts by step, newest first, each with a link to the list of the counted items. */
export function ActivityTable({ activity }: { activity: Activity }) {
  const columns = useMemo((): readonly Column<number>[] => {
    const timeOf = (step: number) => timeOfDay(new Date(startOf(activity, step)))
    return [
      { key: 'time', title: 'Time', width: '75px', render: timeOf },
      { key: 'counts', title: 'What happened', render: (step) => <Counts activity={activity} step={step} /> },
    ]
  }, [activity])
  return (
    <DataTable
      label="Activity by time"
      columns={columns}
      rows={busySteps(activity)}
      rowKey={(step) => String(step)}
      maxHeight="320px"
      empty={<EmptyState title="Nothing happened in this time">A longer period may show more.</EmptyState>}
    />
  )
}

function Counts({ activity, step }: { activity: Activity; step: number }) {
  const counted = PARTS.filter(({ kind }) => (activity.series[kind][step] ?? 0) > 0)
  return (
    <Group gap="sm">
      {counted.map((part) => (
        <TextLink key={part.kind} {...part.list(...timesOf(activity, step))}>
          {countText(part, activity.series[part.kind][step] ?? 0)}
        </TextLink>
      ))}
    </Group>
  )
}
