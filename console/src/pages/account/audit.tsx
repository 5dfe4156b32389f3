import IconHistory from 'icon:history'
import { Drawer, Stack } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { type AuditLog, listAuditLogs, SEARCHED_TO, SEARCHED_TO_TIME } from '../../../../src/contract/accounts/audit.js'
import { apiWithHeaders } from '../../api/client.js'
import { CALM_MS, usePages } from '../../api/hooks.js'
import { CellButton } from '../../components/cell-buttons.js'
import { Fact } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { FilterField } from '../../components/filter-field.js'
import { Page, Panel } from '../../components/page.js'
import { foundSoFar, PagedTable } from '../../components/paged-table.js'
import { PayloadView } from '../../components/payload.js'
import { EmptyState } from '../../components/states.js'
import { When } from '../../components/when.js'
import { counted, dateTime } from '../../lib/format.js'
import { payloadOfText } from '../../lib/payload.js'
import { given } from '../../lib/search.js'

const route = getRouteApi('/shell/audit')
const PAGE = 200

/** The audit log: who changed what, with which credential and from which IP address. */
export function AuditPage() {
  const { search } = route.useSearch()
  const navigate = useNavigate()
  const setSearch = (text: string | undefined) =>
    void navigate({ to: '/audit', search: given({ search: text }), replace: true })
  const [open, setOpen] = useState<AuditLog | undefined>()
  const log = useAuditLog(search)
  const columns = useMemo(() => columnsFor(setOpen), [])
  const entries = useMemo(() => log.data?.pages.flatMap(({ entries }) => entries), [log.data])
  const searchedTo = log.data?.pages.at(-1)?.searchedTo
  return (
    <Page title="Audit log" about="Every change to this account or team, newest first.">
      <Panel
        flush
        title="Entries"
        actions={<FilterField label="Search the entries" isSearch value={search} onChange={setSearch} />}
      >
        <PagedTable
          label="Audit log"
          columns={columns}
          pages={log}
          rows={entries}
          searched={
            searchedTo && foundSoFar(counted(entries?.length ?? 0, 'entry', 'entries'), searchedTo.timestamp * 1000)
          }
          rowKey={(entry) => entry.log_id}
          onOpen={setOpen}
          empty={
            <EmptyState
              title={search === undefined ? 'No changes yet' : 'No entries match the search'}
              icon={IconHistory}
            >
              {search === undefined ? 'Every change is listed here with its actor.' : 'Change or clear the search.'}
            </EmptyState>
          }
        />
      </Panel>
      <Entry entry={open} onClose={() => setOpen(undefined)} />
    </Page>
  )
}

/** A page of the audit log. */
interface AuditPageOf {
  readonly entries: readonly AuditLog[]
  /** The last entry that was searched, if the search continues after it. */
  readonly searchedTo: Pick<AuditLog, 'log_id' | 'timestamp'> | undefined
}

function useAuditLog(search: string | undefined) {
  const query = { limit: PAGE, ...given({ search }) }
  return usePages(
    listAuditLogs,
    { query },
    async (place, signal): Promise<AuditPageOf> => {
      const args = { query: { ...query, ...(place && { before: String(place.before) }) } }
      const { body: entries, headers } = await apiWithHeaders(listAuditLogs, args, signal)
      const logId = headers.get(SEARCHED_TO)
      const timestamp = Number(headers.get(SEARCHED_TO_TIME))
      return { entries, searchedTo: logId === null ? undefined : { log_id: logId, timestamp } }
    },
    {
      everyMs: CALM_MS,
      next: ({ entries, searchedTo }) => {
        const last = searchedTo ?? (entries.length < PAGE ? undefined : entries.at(-1))
        return last && { before: last.log_id }
      },
    },
  )
}

const columnsFor = (onOpen: (entry: AuditLog) => void): readonly Column<AuditLog>[] => [
  { key: 'time', title: 'When', width: '95px', render: (entry) => <When atMs={entry.timestamp * 1000} /> },
  {
    key: 'act',
    title: 'Action',
    wraps: true,
    render: (entry) => <CellButton onClick={() => onOpen(entry)}>{entry.action_string}</CellButton>,
  },
  { key: 'entity', title: 'Entity', from: 'sm', wraps: true, render: (entry) => entityOf(entry) },
  { key: 'actor', title: 'Actor', from: 'xs', wraps: true, render: (entry) => entry.actor },
  { key: 'source', title: 'Credential', from: 'md', wraps: true, render: (entry) => entry.source },
  { key: 'ip', title: 'IP address', from: 'lg', width: '130px', render: (entry) => entry.ip },
]

/** The name of the changed item, or its id if the name is no longer known. */
const entityOf = ({ entity, entity_name: name }: AuditLog) => (name === undefined ? <code>{entity}</code> : name)

function Entry({ entry, onClose }: { entry: AuditLog | undefined; onClose: () => void }) {
  return (
    <Drawer opened={entry !== undefined} onClose={onClose} position="right" size="md" title={entry?.action_string}>
      {entry === undefined ? null : (
        <Stack gap="md">
          <div>
            <Fact name="When">{dateTime(entry.timestamp * 1000)}</Fact>
            <Fact name="Actor">{entry.actor}</Fact>
            <Fact name="Credential">{entry.source}</Fact>
            <Fact name="IP address">{entry.ip}</Fact>
            {entry.entity_name === undefined ? null : <Fact name="Name">{entry.entity_name}</Fact>}
            <Fact name="Entity" copy={entry.entity}>
              {entry.entity}
            </Fact>
          </div>
          <PayloadView payload={payloadOfText(entry.notes)} label="Details" empty="No details." />
        </Stack>
      )}
    </Drawer>
  )
}
