import { SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import {
  type DatabaseStats,
  DEFAULT_STATS_PERIOD,
  getDatabaseStats,
  STATS_PERIODS,
  type StatsPeriod,
} from '../../../../src/contract/databases/stats.js'
import { LIVE_MS, useApi } from '../../api/hooks.js'
import { SeriesChart } from '../../components/chart.js'
import { DataTable } from '../../components/data-table.js'
import { Figure } from '../../components/figure.js'
import { Panel } from '../../components/page.js'
import { EmptyState, Loaded } from '../../components/states.js'
import { bytes, dollars, short, whole } from '../../lib/format.js'

/** The statistics of a database, live. */
export function UsageTab({ database }: { database: DatabaseRecord }) {
  const [period, setPeriod] = useState<StatsPeriod>(DEFAULT_STATS_PERIOD)
  const stats = useApi(
    getDatabaseStats,
    { params: { id: database.database_id }, query: { period } },
    { everyMs: LIVE_MS },
  )
  return (
    <Stack gap="lg">
      <SegmentedControl
        aria-label="Period"
        data={[...STATS_PERIODS]}
        value={period}
        onChange={setPeriod}
        style={{ alignSelf: 'flex-start' }}
      />
      <Loaded query={stats}>
        {(data) => (
          <>
            <Month stats={data} />
            <Charts stats={data} />
            <Days stats={data} />
            <Commands stats={data} />
          </>
        )}
      </Loaded>
    </Stack>
  )
}

const commandsText = (stats: DatabaseStats): string =>
  [
    shortCounted(stats.total_monthly_read_requests, 'read'),
    shortCounted(stats.total_monthly_write_requests, 'write'),
    shortCounted(stats.total_monthly_script_requests, 'script'),
  ].join(', ')

const shortCounted = (count: number, one: string): string => `${short(count)} ${count === 1 ? one : `${one}s`}`

function Month({ stats }: { stats: DatabaseStats }) {
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Figure label="Requests this month" value={short(stats.total_monthly_requests)} note={commandsText(stats)} />
      <Figure label="Cost this month" value={dollars(stats.total_monthly_billing)} note="so far" />
      <Figure
        label="Data"
        value={bytes(stats.current_storage)}
        note={`${bytes(stats.total_monthly_storage)} on average this month`}
      />
      <Figure
        label="Bandwidth this month"
        value={bytes(stats.total_monthly_bandwidth)}
        note={`${bytes(stats.dailybandwidth)} today`}
      />
    </SimpleGrid>
  )
}

const ms = (value: number): string => `${Number(value.toFixed(value < 10 ? 2 : 0))} ms`

/** A rate, from values that are per second. */
const rate = (value: number): string => `${short(value)}/s`

function Charts({ stats }: { stats: DatabaseStats }) {
  const pair = (mean: keyof DatabaseStats, p99: keyof DatabaseStats) => [
    { name: 'mean', points: stats[mean] as DatabaseStats['read'] },
    { name: 'p99', points: stats[p99] as DatabaseStats['read'] },
  ]
  return (
    <Panel title="Over the period">
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="xl" verticalSpacing="xl">
        <SeriesChart title="Commands" series={[{ name: 'commands', points: stats.throughput }]} show={rate} />
        <SeriesChart
          title="Reads and writes"
          series={[
            { name: 'reads', points: stats.read },
            { name: 'writes', points: stats.write },
          ]}
          show={rate}
        />
        <SeriesChart title="Latency" series={pair('latencymean', 'latency_99')} show={ms} />
        <SeriesChart title="Read latency" series={pair('read_latency_mean', 'read_latency_99')} show={ms} />
        <SeriesChart title="Write latency" series={pair('write_latency_mean', 'write_latency_99')} show={ms} />
        <SeriesChart
          title="Hits and misses"
          series={[
            { name: 'hits', points: stats.hits },
            { name: 'misses', points: stats.misses },
          ]}
          show={rate}
        />
        <SeriesChart title="Keys" series={[{ name: 'keys', points: stats.keyspace }]} show={short} />
        <SeriesChart
          title="Connections"
          series={[{ name: 'connections', points: stats.connection_count }]}
          show={short}
        />
        <SeriesChart title="Disk" series={[{ name: 'disk', points: stats.diskusage }]} show={bytes} />
      </SimpleGrid>
    </Panel>
  )
}

function Days({ stats }: { stats: DatabaseStats }) {
  return (
    <Panel title="By day">
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="xl">
        <SeriesChart title="Requests" series={[{ name: 'requests', points: stats.dailyrequests }]} show={short} byDay />
        <SeriesChart title="Bandwidth" series={[{ name: 'bytes', points: stats.bandwidths }]} show={bytes} byDay />
        <SeriesChart title="Cost" series={[{ name: 'cost', points: stats.dailybilling }]} show={dollars} byDay />
      </SimpleGrid>
    </Panel>
  )
}

function Commands({ stats }: { stats: DatabaseStats }) {
  const rows = stats.command_counts
    .map(({ metric_identifier, data_points }) => ({
      name: metric_identifier,
      count: data_points.reduce((sum, { y }) => sum + y, 0),
    }))
    .filter(({ count }) => count > 0)
    .sort((one, other) => other.count - one.count)
  return (
    <Panel title="Commands of the period" flush>
      <DataTable
        label="Commands of the period"
        rows={rows}
        rowKey={({ name }) => name}
        columns={[
          {
            key: 'name',
            title: 'Command',
            render: ({ name }) => (
              <Text ff="monospace" size="sm">
                {name}
              </Text>
            ),
          },
          { key: 'count', title: 'Sent', align: 'right', width: '140px', render: ({ count }) => whole(count) },
        ]}
        empty={
          <EmptyState title="No command was sent in this period">
            Commands of connected clients are counted here.
          </EmptyState>
        }
      />
    </Panel>
  )
}
