import IconDatabase from 'icon:database'
import IconDatabasePlus from 'icon:database-plus'
import { Button } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import {
  type DatabaseSummaries,
  type DatabaseSummary,
  listDatabaseSummaries,
} from '../../../../src/contract/console/console.js'
import { stateOfDatabase } from '../../../../src/contract/words/states.js'
import { LIVE_MS, useApiPages } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { OrCommand } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { PagedTable } from '../../components/paged-table.js'
import { orderText } from '../../components/sorting.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, NoMatches } from '../../components/states.js'
import { When } from '../../components/when.js'
import { serverMs } from '../../lib/clock.js'
import { bytes, counted, short } from '../../lib/format.js'
import { given } from '../../lib/search.js'
import { CreateDatabase } from './create.js'
import { DatabaseFilters } from './list-filters.js'
import { type ListSearch, listSearchAt, orderOf, queryOf } from './list-search.js'
import { paymentTitle } from './words.js'

const route = getRouteApi('/shell/databases')
const TYPING_MS = 300
const HOUR_MS = 3_600_000

/** All databases of the account. */
export function DatabasesPage() {
  const { create, ...search } = route.useSearch()
  const shown = listSearchAt(search)
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  // Filters and order are in the URL, so that they are kept when the user comes back from a database.
  const show = (search: ListSearch & { create?: true }) => void navigate({ to: '/databases', search, replace: true })
  const open = (isOpen: boolean) =>
    // Closing replaces the history entry, so that going back does not open the dialog again.
    void navigate({ to: '/databases', search: isOpen ? { ...shown, create: true } : shown, replace: !isOpen })
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
      <List shown={shown} onChange={show} button={button} />
      <CreateDatabase isOpen={create === true && canWrite} onClose={() => open(false)} />
    </Page>
  )
}

interface ListProps {
  readonly shown: ListSearch
  readonly onChange: (shown: ListSearch) => void
  /** Creates the first database. */
  readonly button: ReactNode
}

function List({ shown, onChange, button }: ListProps) {
  const navigate = useNavigate()
  const { sort, ...filters } = shown
  const [searched] = useDebouncedValue(shown.search, TYPING_MS)
  // Rounded to the hour: a query with the exact time would change at each render, and the list would be read repeatedly.
  const hourMs = Math.floor(serverMs() / HOUR_MS) * HOUR_MS
  const query = queryOf(given({ sort, ...filters, search: searched }), hourMs)
  const pages = useApiPages(
    listDatabaseSummaries,
    { query },
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const rows = useMemo(() => unique(pages.data?.pages.flatMap(({ databases }) => databases)), [pages.data])
  const isFiltered = Object.keys(filters).length > 0
  return (
    <Panel
      flush
      title="All databases"
      about={countOf(pages.data?.pages[0], isFiltered)}
      actions={
        <DatabaseFilters
          filters={filters}
          onChange={(changed) => onChange({ ...changed, ...(sort !== undefined && { sort }) })}
        />
      }
    >
      <PagedTable
        label="Databases"
        columns={COLUMNS}
        pages={pages}
        rows={rows}
        rowKey={({ database_id }) => database_id}
        order={orderOf(shown)}
        onOrder={(order) => onChange({ ...filters, sort: orderText(order) })}
        onOpen={({ database_id }) => void navigate({ to: '/databases/$id', params: { id: database_id } })}
        empty={
          isFiltered ? (
            <NoMatches what="databases" />
          ) : (
            <EmptyState
              title="No databases yet"
              icon={IconDatabase}
              action={button && <OrCommand command="homeport db create --name my-app">{button}</OrCommand>}
            >
              Creating one takes about a second. Connect with any Redis client, or over HTTP.
            </EmptyState>
          )
        }
      />
    </Panel>
  )
}

/** A database whose size or requests changed between two pages may be on both. */
const unique = (rows: readonly DatabaseSummary[] | undefined): readonly DatabaseSummary[] | undefined =>
  rows && [...new Map(rows.map((row) => [row.database_id, row])).values()]

/** The number of databases as text; `undefined` if all of them are in the list. */
function countOf(page: DatabaseSummaries | undefined, isFiltered: boolean): string | undefined {
  if (page?.cursor === undefined) return undefined
  return `${counted(page.matched, 'database')}${!isFiltered ? '' : ` ${page.matched === 1 ? 'matches' : 'match'}`}`
}

const COLUMNS: readonly Column<DatabaseSummary>[] = [
  { key: 'name', title: 'Name', sorts: 'asc', render: (database) => <Name database={database} /> },
  { key: 'state', title: 'State', sorts: 'asc', width: '165px', render: (database) => <State database={database} /> },
  {
    key: 'region',
    title: 'Regions',
    sorts: 'asc',
    width: '200px',
    from: 'sm',
    render: (database) => <Regions database={database} />,
  },
  { key: 'plan', title: 'Plan', sorts: 'asc', width: '130px', from: 'md', render: paymentTitle },
  {
    key: 'size',
    title: 'Data',
    sorts: 'desc',
    width: '85px',
    align: 'right',
    from: 'sm',
    render: ({ storage_bytes }) => bytes(storage_bytes),
  },
  {
    key: 'requests',
    title: 'Monthly requests',
    sorts: 'desc',
    width: '165px',
    align: 'right',
    from: 'md',
    render: ({ requests }) => short(requests),
  },
  {
    key: 'created',
    title: 'Created',
    sorts: 'desc',
    width: '105px',
    from: 'lg',
    render: ({ creation_time }) => <When atMs={creation_time * 1000} />,
  },
]

function Name({ database: { database_id, database_name } }: { database: DatabaseSummary }) {
  return (
    <TextLink
      to="/databases/$id"
      params={{ id: database_id }}
      fw={550}
      style={{ whiteSpace: 'normal', overflowWrap: 'anywhere' }}
    >
      {database_name}
    </TextLink>
  )
}

function State({ database }: { database: DatabaseSummary }) {
  return <StateOf word={stateOfDatabase(database)} />
}

function Regions({ database: { primary_region, read_regions } }: { database: DatabaseSummary }) {
  return `${primary_region}${read_regions.length === 0 ? '' : ` + ${read_regions.length} read`}`
}
