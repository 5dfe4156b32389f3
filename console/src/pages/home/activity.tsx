import { Button, Group, Paper, SimpleGrid, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { memo, Suspense } from 'react'
import { type Activity, getActivity } from '../../../../src/contract/console/activity.js'
import { CALM_MS, useApi } from '../../api/hooks.js'
import { lazyPage } from '../../app/lazy-page.js'
import { Bars } from '../../components/bars.js'
import { TextLink } from '../../components/link.js'
import { Panel } from '../../components/page.js'
import { Loaded } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { timeOfDay } from '../../lib/format.js'
import { CHARTS, type Chart, type ChartPart, countText, startOf, sumOf, timesOf, wholeTimesOf } from './charts.js'

const route = getRouteApi('/shell/')

const PERIODS = [
  ['1h', 'Last hour'],
  ['1d', 'Last day'],
] as const

/**
 * The activity of the account in the last hour or day, as charts with links to the lists of the counted items. It does not
 * render again with the rest of the page, which changes more often.
 */
export const ActivityPanel = memo(function ActivityPanel() {
  const { period = '1h' } = route.useSearch()
  const activity = useApi(getActivity, { query: { period } }, { everyMs: CALM_MS })
  return (
    <Panel
      title="Activity"
      actions={
        <Group gap="sm" component="nav" aria-label="Period of the activity">
          {PERIODS.map(([value, title]) => (
            <TextLink
              key={value}
              to="/"
              search={value === '1h' ? {} : { period: value }}
              activeOptions={{ includeSearch: true }}
              aria-current={value === period ? 'true' : undefined}
              fw={value === period ? 650 : 400}
            >
              {title}
            </TextLink>
          ))}
        </Group>
      }
    >
      <Loaded query={activity}>
        {(data) => (
          <>
            <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }} spacing="md">
              {CHARTS.map((chart) => (
                <ChartView key={chart.title} chart={chart} activity={data} />
              ))}
            </SimpleGrid>
            <Numbers activity={data} />
          </>
        )}
      </Loaded>
    </Panel>
  )
})

function ChartView({ chart: { title, parts }, activity }: { chart: Chart; activity: Activity }) {
  const navigate = useNavigate()
  const words = parts.map((part) => countText(part, sumOf(activity, part.kind))).join(', ')
  const titleOf = (step: number): string => {
    const counts = parts.map((part) => countText(part, activity.series[part.kind][step] ?? 0))
    return `${timeOfDay(new Date(startOf(activity, step)))}: ${counts.join(', ')}`
  }
  const open = (step: number): void => {
    const shown = parts.find(({ kind }) => (activity.series[kind][step] ?? 0) > 0)
    if (shown) void navigate(shown.list(...timesOf(activity, step)))
  }
  return (
    <Paper
      role="group"
      aria-label={title}
      withBorder
      p="sm"
      bg="var(--hp-surface)"
      style={{ borderColor: 'var(--hp-line)', display: 'flex', flexDirection: 'column' }}
    >
      <Text size="sm" fw={550} component="h3" m={0}>
        {title}
      </Text>
      <Group gap="6px 10px" mb="auto">
        {parts.map((part) => (
          <Total key={part.kind} part={part} activity={activity} hasTone={parts.length > 1} />
        ))}
      </Group>
      <Bars
        label={`${title}: ${words}`}
        parts={parts.map(({ kind, tone }) => ({ tone, counts: activity.series[kind] }))}
        titleOf={titleOf}
        onStep={open}
      />
      <Group justify="space-between" aria-hidden>
        <Text size="xs" c="dimmed">
          {timeOfDay(new Date(startOf(activity, 0)))}
        </Text>
        <Text size="xs" c="dimmed">
          now
        </Text>
      </Group>
    </Paper>
  )
}

/** The sum of a count, as a link to the list behind it. */
function Total({ part, activity, hasTone }: { part: ChartPart; activity: Activity; hasTone: boolean }) {
  const link = (
    <TextLink {...part.list(...wholeTimesOf(activity))}>{countText(part, sumOf(activity, part.kind))}</TextLink>
  )
  return hasTone ? <Status tone={part.tone}>{link}</Status> : link
}

const ActivityTable = lazyPage(() => import('./activity-table.js'), 'ActivityTable')

/** The same numbers as text, with a link for each. */
function Numbers({ activity }: { activity: Activity }) {
  const [isOpen, { toggle }] = useDisclosure()
  return (
    <>
      <Button
        size="compact-sm"
        variant="subtle"
        mt="sm"
        aria-expanded={isOpen}
        onClick={toggle}
        onPointerEnter={() => void ActivityTable.preload()}
      >
        {isOpen ? 'Hide the numbers' : 'Show the numbers'}
      </Button>
      {isOpen ? (
        <Suspense fallback={null}>
          <ActivityTable activity={activity} />
        </Suspense>
      ) : null}
    </>
  )
}
