import { SimpleGrid, Stack, Tabs, Text } from '@mantine/core'
import { getRegionStatus } from '../../../../src/contract/console/console.js'
import { getAwake } from '../../../../src/contract/databases/awake.js'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { NO_LIMIT } from '../../../../src/contract/databases/plans.js'
import { type DatabaseStats, getDatabaseStats } from '../../../../src/contract/databases/stats.js'
import { CALM_MS, LIVE_MS, useApi } from '../../api/hooks.js'
import { CodeBlock, Fact } from '../../components/copy.js'
import { LimitBar } from '../../components/figure.js'
import { Panel } from '../../components/page.js'
import { ErrorState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { bytes, counted, dollars, durationNs, limit, whole } from '../../lib/format.js'
import { type Snippet, snippetsOf } from './snippets.js'
import { awakeText, hasCredentials, paymentTitle, placeOf, regionText } from './words.js'

/** How to connect, and how much of the limits is used. */
export function OverviewTab({ database }: { database: DatabaseRecord }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <Stack gap="lg" miw={0}>
        <Connect database={database} />
        <Credentials database={database} />
      </Stack>
      <Stack gap="lg" miw={0}>
        <Limits database={database} />
        <Regions database={database} />
        <Details database={database} />
      </Stack>
    </SimpleGrid>
  )
}

function Connect({ database }: { database: DatabaseRecord }) {
  if (!hasCredentials(database)) return null
  return <ConnectTabs database={database} />
}

function ConnectTabs({ database }: { database: DatabaseRecord }) {
  const snippets = snippetsOf(database)
  return (
    <Panel title="Connect">
      <Tabs defaultValue={snippets[0]?.key ?? ''} variant="pills" keepMounted={false}>
        <Tabs.List mb="sm" aria-label="Ways to connect">
          {snippets.map(({ key, title }) => (
            <Tabs.Tab key={key} value={key} py={6} px="sm">
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {snippets.map((snippet) => (
          <Tabs.Panel key={snippet.key} value={snippet.key}>
            <SnippetView snippet={snippet} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Panel>
  )
}

function SnippetView({ snippet: { title, code, secrets, note } }: { snippet: Snippet }) {
  return (
    <Stack gap="xs">
      <CodeBlock code={code} label={`Connect with ${title}`} secrets={secrets} />
      {note === undefined ? null : (
        <Text size="xs" c="dimmed">
          {note}
        </Text>
      )}
    </Stack>
  )
}

function Credentials({ database }: { database: DatabaseRecord }) {
  const { endpoint, port, tls, password, rest_url, rest_token, read_only_rest_token } = database
  return (
    <Panel title="Address and credentials">
      <Fact name="Host" copy={endpoint}>
        {endpoint}
      </Fact>
      <Fact name="Port" copy={String(port)}>
        {port}
      </Fact>
      <Fact name="TLS">{tls ? 'on' : 'off'}</Fact>
      <Secret name="Password" value={password} />
      <Fact name="REST URL" copy={rest_url}>
        {rest_url}
      </Fact>
      <Secret name="REST token" value={rest_token} />
      <Secret name="Read-only token" value={read_only_rest_token} />
    </Panel>
  )
}

function Secret({ name, value }: { name: string; value: string | undefined }) {
  if (value === undefined) return <Fact name={name}>not shown to your key</Fact>
  return (
    <Fact name={name} copy={value} secret>
      {value}
    </Fact>
  )
}

function Limits({ database }: { database: DatabaseRecord }) {
  const stats = useApi(getDatabaseStats, { params: { id: database.database_id } }, { everyMs: CALM_MS })
  return (
    <Panel title="Limits">
      {stats.isError ? <ErrorState error={stats.error} onRetry={() => void stats.refetch()} /> : null}
      <LimitBars database={database} stats={stats.data} />
    </Panel>
  )
}

/** The share of the limit from which on the page advises the user to act. */
const NEARLY_FULL = 0.9

function LimitBars({ database, stats }: { database: DatabaseRecord; stats: DatabaseStats | undefined }) {
  const { db_disk_threshold, db_memory_threshold, db_request_limit, budget } = database
  const dataLimit = Math.min(db_disk_threshold, db_memory_threshold)
  const isNearlyFull = !database.eviction && (stats?.current_storage ?? 0) > NEARLY_FULL * dataLimit
  const last = (name: 'connection_count' | 'throughput') => stats && (stats[name].at(-1)?.y ?? 0)
  return (
    <Stack gap="md">
      <LimitBar
        label="Data"
        used={stats?.current_storage}
        allowed={dataLimit}
        show={bytes}
        {...(isNearlyFull && {
          note: 'When it is full, writes are refused. Delete keys, or change the plan in Settings.',
        })}
      />
      <LimitBar label="Connections" used={last('connection_count')} allowed={database.db_max_clients} show={whole} />
      <LimitBar
        label="Commands per second"
        used={last('throughput')}
        allowed={database.db_max_commands_per_second}
        show={whole}
      />
      {db_request_limit >= NO_LIMIT ? null : (
        <LimitBar
          label="Commands this month"
          used={stats?.total_monthly_requests}
          allowed={db_request_limit}
          show={whole}
        />
      )}
      {budget === 0 ? null : (
        <LimitBar label="Budget this month" used={stats?.total_monthly_billing} allowed={budget} show={dollars} />
      )}
      <div>
        <Fact name="Largest request">{bytes(database.db_max_request_size)}</Fact>
        <Fact name="Largest value">{bytes(database.db_max_entry_size)}</Fact>
        <Fact name="Commands per month">{limit(db_request_limit)}</Fact>
        <Fact name="Idle connections close">after {durationNs(database.db_conn_idle_timeout)}</Fact>
      </div>
    </Stack>
  )
}

function Regions({ database: { database_id, primary_region, all_members } }: { database: DatabaseRecord }) {
  const status = useApi(getRegionStatus, { params: { id: database_id } }, { everyMs: LIVE_MS })
  return (
    <Panel title="Regions">
      {all_members.map((region) => {
        const seen = status.data?.find((known) => known.region === region)
        const role = region === primary_region ? 'primary' : 'replica'
        return (
          <Fact key={region} name={`${region} · ${placeOf(region)}`}>
            <Status tone={seen === undefined ? 'idle' : seen.state === 'serving' ? 'ok' : 'busy'}>
              {role}, {status.data ? regionText(seen) : '…'}
            </Status>
          </Fact>
        )
      })}
    </Panel>
  )
}

function Details({ database }: { database: DatabaseRecord }) {
  return (
    <Panel title="About">
      <Fact name="Plan">{paymentTitle(database)}</Fact>
      <Fact name="Created">
        <When atMs={database.creation_time * 1000} />
      </Fact>
      <Fact name="When full">
        {database.eviction ? 'the least recently used keys are evicted' : 'writes are refused'}
      </Fact>
      <Fact name="Persistence">
        {database.db_type === 'pebble' ? 'log of every write, synced every second' : 'snapshots'}
      </Fact>
      <Fact name="Allow list">
        {database.allowed_ip_ranges.length === 0
          ? 'all addresses'
          : counted(database.allowed_ip_ranges.length, 'address or network', 'addresses and networks')}
      </Fact>
      {(database.set_aside ?? []).map(({ node, path, bytes: size, taken_at }) => (
        <Fact key={`${node} ${path}`} name="Set aside" copy={path}>
          {bytes(size)} at node {node}, taken over <When atMs={taken_at * 1000} />
        </Fact>
      ))}
      <Awake databaseId={database.database_id} />
      <Fact name="ID" copy={database.database_id}>
        {database.database_id}
      </Fact>
    </Panel>
  )
}

function Awake({ databaseId }: { databaseId: string }) {
  const awake = useApi(getAwake, { params: { id: databaseId } }, { everyMs: LIVE_MS })
  return <Fact name={awake.data?.awake === false ? 'Asleep' : 'Awake'}>{awake.data ? awakeText(awake.data) : '…'}</Fact>
}
