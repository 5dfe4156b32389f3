import IconDatabase from 'icon:database'
import IconDatabasePlus from 'icon:database-plus'
import IconSearch from 'icon:search'
import { Button } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type DatabaseRecord, listDatabases } from '../../../../src/contract/databases.js'
import { getDatabaseStats } from '../../../../src/contract/databases-stats.js'
import { CALM_MS, LIVE_MS, useApi } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { SearchBox } from '../../components/filter-bar.js'
import { TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { bytes, short } from '../../lib/format.js'
import { CreateDatabase } from './create.js'
import { paymentTitle, stateOf } from './words.js'

const route = getRouteApi('/shell/databases')

/** All databases of the account. */
export function DatabasesPage() {
  const { create, search = '' } = route.useSearch()
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const databases = useApi(listDatabases, { query: { credentials: 'hide' } }, { everyMs: LIVE_MS, paced: paceOf })
  const kept = search === '' ? {} : { search }
  const open = (isOpen: boolean) =>
    void navigate({ to: '/databases', search: isOpen ? { ...kept, create: true } : kept })
  // In the address, so that it is there again for those who come back from a database.
  const setSearch = (text: string) =>
    void navigate({ to: '/databases', search: text === '' ? {} : { search: text }, replace: true })
  const button = canWrite ? (
    <Button leftSection={<IconDatabasePlus size={16} />} onClick={() => open(true)}>
      Create a database
    </Button>
  ) : undefined
  return (
    <Page
      title="Databases"
      about="Redis-compatible databases. Each has an address for Redis clients and a REST API; one that nobody uses sleeps until the next request."
      actions={button}
    >
      <Panel
        flush
        title="All databases"
        actions={<SearchBox label="Search by name" value={search} onChange={setSearch} />}
      >
        <Loaded query={databases} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Databases"
              columns={COLUMNS}
              rows={rows.filter(({ database_name }) =>
                database_name.toLowerCase().includes(search.trim().toLowerCase()),
              )}
              rowKey={({ database_id }) => database_id}
              onOpen={({ database_id }) => void navigate({ to: '/databases/$id', params: { id: database_id } })}
              empty={
                rows.length === 0 ? (
                  <EmptyState title="There is no database yet" icon={IconDatabase} action={button}>
                    Creating one takes about a second. Connect with any Redis client, or over HTTP.
                  </EmptyState>
                ) : (
                  <EmptyState title="No database has this in its name" icon={IconSearch} />
                )
              }
            />
          )}
        </Loaded>
      </Panel>
      <CreateDatabase isOpen={create === true && canWrite} onClose={() => open(false)} />
    </Page>
  )
}

/** The server puts a list together at some five thousand records a second, and has other things to do. */
const MS_A_RECORD = 2
const paceOf = (rows: readonly DatabaseRecord[]): number => rows.length * MS_A_RECORD

const COLUMNS: readonly Column<DatabaseRecord>[] = [
  { key: 'name', title: 'Name', render: (database) => <Name database={database} /> },
  { key: 'state', title: 'State', width: '140px', render: (database) => <State database={database} /> },
  {
    key: 'region',
    title: 'Regions',
    width: '200px',
    from: 'sm',
    render: (database) => <Regions database={database} />,
  },
  { key: 'plan', title: 'Plan', width: '140px', from: 'md', render: paymentTitle },
  { key: 'size', title: 'Data', width: '100px', align: 'right', from: 'sm', render: (row) => <Size database={row} /> },
  {
    key: 'rate',
    title: 'Commands/s',
    width: '120px',
    align: 'right',
    from: 'md',
    render: (row) => <Rate database={row} />,
  },
  {
    key: 'created',
    title: 'Created',
    width: '120px',
    from: 'lg',
    render: ({ creation_time }) => <When atMs={creation_time * 1000} />,
  },
]

function Name({ database: { database_id, database_name } }: { database: DatabaseRecord }) {
  return (
    <TextLink to="/databases/$id" params={{ id: database_id }} fw={550}>
      {database_name}
    </TextLink>
  )
}

function State({ database }: { database: DatabaseRecord }) {
  const { tone, text } = stateOf(database)
  return <Status tone={tone}>{text}</Status>
}

/** Asked for by the rows that are seen, so that a thousand databases are not a thousand requests. */
const useStats = ({ database_id }: DatabaseRecord) =>
  useApi(getDatabaseStats, { params: { id: database_id } }, { everyMs: CALM_MS }).data

function Size({ database }: { database: DatabaseRecord }) {
  const stats = useStats(database)
  return stats ? bytes(stats.current_storage) : '…'
}

function Rate({ database }: { database: DatabaseRecord }) {
  const stats = useStats(database)
  return stats ? short(stats.throughput.at(-1)?.y ?? 0) : '…'
}

function Regions({ database: { primary_region, read_regions } }: { database: DatabaseRecord }) {
  return `${primary_region}${read_regions.length === 0 ? '' : ` + ${read_regions.length} read`}`
}
