import IconDatabase from 'icon:database'
import IconDatabasePlus from 'icon:database-plus'
import IconSearch from 'icon:search'
import { Button } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import {
  type DatabaseSummaries,
  type DatabaseSummary,
  listDatabaseSummaries,
} from '../../../../src/contract/console/console.js'
import { LIVE_MS, useApiPages } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import type { Column } from '../../components/data-table.js'
import { SearchBox } from '../../components/filter-bar.js'
import { TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { PagedTable } from '../../components/paged-table.js'
import { EmptyState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { bytes, counted, short } from '../../lib/format.js'
import { given } from '../../lib/search.js'
import { CreateDatabase } from './create.js'
import { paymentTitle, stateOf } from './words.js'

const route = getRouteApi('/shell/databases')
const TYPING_MS = 300

/** All databases of the account. */
export function DatabasesPage() {
  const { create, search } = route.useSearch()
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const [searched] = useDebouncedValue(search, TYPING_MS)
  const pages = useApiPages(
    listDatabaseSummaries,
    { query: given({ search: searched }) },
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const rows = useMemo(() => pages.data?.pages.flatMap(({ databases }) => databases), [pages.data])
  const kept = given({ search })
  const open = (isOpen: boolean) =>
    void navigate({ to: '/databases', search: isOpen ? { ...kept, create: true } : kept })
  // In the URL, so that the search is kept when the reader comes back from a database.
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
      about="Redis-compatible databases, each with a Redis port and a REST API. An unused database sleeps until the next request."
      actions={button}
    >
      <Panel
        flush
        title="All databases"
        about={countOf(pages.data?.pages[0], searched)}
        actions={<SearchBox label="Search by name or id" value={search ?? ''} onChange={setSearch} />}
      >
        <PagedTable
          label="Databases"
          columns={COLUMNS}
          pages={pages}
          rows={rows}
          rowKey={({ database_id }) => database_id}
          onOpen={({ database_id }) => void navigate({ to: '/databases/$id', params: { id: database_id } })}
          empty={
            search === undefined ? (
              <EmptyState title="No databases yet" icon={IconDatabase} action={button}>
                Creating one takes about a second. Connect with any Redis client, or over HTTP.
              </EmptyState>
            ) : (
              <EmptyState title="No databases match the search" icon={IconSearch} />
            )
          }
        />
      </Panel>
      <CreateDatabase isOpen={create === true && canWrite} onClose={() => open(false)} />
    </Page>
  )
}

/** The number of databases, where the visible rows do not show it. */
function countOf(page: DatabaseSummaries | undefined, search: string | undefined): string | undefined {
  if (page?.cursor === undefined) return undefined
  return `${counted(page.matched, 'database')}${search === undefined ? '' : ` ${page.matched === 1 ? 'matches' : 'match'}`}`
}

const COLUMNS: readonly Column<DatabaseSummary>[] = [
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
  {
    key: 'size',
    title: 'Data',
    width: '100px',
    align: 'right',
    from: 'sm',
    render: ({ storage_bytes }) => bytes(storage_bytes),
  },
  {
    key: 'requests',
    title: 'Requests this month',
    width: '170px',
    align: 'right',
    from: 'md',
    render: ({ requests }) => short(requests),
  },
  {
    key: 'created',
    title: 'Created',
    width: '120px',
    from: 'lg',
    render: ({ creation_time }) => <When atMs={creation_time * 1000} />,
  },
]

function Name({ database: { database_id, database_name } }: { database: DatabaseSummary }) {
  return (
    <TextLink to="/databases/$id" params={{ id: database_id }} fw={550}>
      {database_name}
    </TextLink>
  )
}

function State({ database }: { database: DatabaseSummary }) {
  const { tone, text } = stateOf(database)
  return <Status tone={tone}>{text}</Status>
}

function Regions({ database: { primary_region, read_regions } }: { database: DatabaseSummary }) {
  return `${primary_region}${read_regions.length === 0 ? '' : ` + ${read_regions.length} read`}`
}
