import IconInbox from 'icon:inbox'
import IconSend from 'icon:send'
import { Button, Select, Text } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { Static } from 'typebox'
import type { Message } from '../../../../src/contract/queue/fields.js'
import { listLogs } from '../../../../src/contract/queue/messages.js'
import { LIVE_MS, useApiPages } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { OrCommand } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { barField } from '../../components/filter-bar.js'
import { FilterField } from '../../components/filter-field.js'
import { ButtonLink, TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { foundSoFar, PagedTable, type Searched } from '../../components/paged-table.js'
import { EmptyState, NoMatches } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { UrlText } from '../../components/url-text.js'
import { useNow, When } from '../../components/when.js'
import { counted } from '../../lib/format.js'
import { given } from '../../lib/search.js'
import { FilterBar, MomentField } from '../workflows/filters.js'
import { type MessageSummary, messagesOf, standingOf, wordsOf } from './message-log.js'
import { MessageMenu } from './message-menu.js'
import { PublishForm } from './publish.js'
import { EVENT_FILTERS, filtersOf, type MessageSearch, STATE_FILTERS, type StateFilter, timesOf } from './search.js'
import { valuesOfMessage } from './send-again.js'

const route = getRouteApi('/shell/messages')
/** Log entries per request; a message has two or more. */
const PAGE = 500
const PUBLISH = `homeport queue publish https://example.com/hook --body '{"hello":"world"}'`

const STANDING_TITLES: Readonly<Record<StateFilter, string>> = {
  unfinished: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
  canceled: 'Cancelled',
}

/** All stored messages, newest first. */
export function MessagesPage() {
  const search = route.useSearch()
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const { publish: isPublishing, ...filters } = search
  const { log, rows } = useMessages(filters)
  const [again, setAgain] = useState<Static<typeof Message> | undefined>()
  const isEvent = filters.happened !== undefined
  const columns = useMemo(() => [...COLUMNS, timeColumn(isEvent), menuColumn(setAgain)], [isEvent])
  const show = (next: MessageSearch) => void navigate({ to: '/messages', search: next })
  const button = canWrite ? (
    <Button leftSection={<IconSend size={16} />} onClick={() => show({ ...filters, publish: true })}>
      Publish a message
    </Button>
  ) : undefined
  const isFiltered = Object.keys(filters).length > 0
  return (
    <Page
      title="Messages"
      about="A message is an HTTP request that the server stores, signs and delivers, with retries if delivery fails."
      actions={
        <>
          {canWrite && rows?.length !== 0 && canBeCancelled(filters) ? <CancelLink filters={filters} /> : null}
          {button}
        </>
      }
    >
      <Panel flush title="Messages" actions={<Filters filters={filters} onChange={show} />}>
        <PagedTable
          label="Messages"
          columns={columns}
          pages={log}
          rows={rows}
          searched={log.data && searchedOf(filters, log.data, rows?.length ?? 0)}
          rowKey={({ messageId }) => messageId}
          onOpen={({ messageId }) => void navigate({ to: '/messages/$id', params: { id: messageId } })}
          empty={
            isFiltered ? (
              <NoMatches what="messages" />
            ) : (
              <EmptyState
                title="No messages yet"
                icon={IconInbox}
                action={button && <OrCommand command={PUBLISH}>{button}</OrCommand>}
              >
                Publish one here, with any HTTP client, or with the QStash SDK.
              </EmptyState>
            )
          }
        />
      </Panel>
      <PublishForm
        isOpen={isPublishing === true && canWrite}
        // Replaces the history entry, so that going back does not open the closed dialog again.
        onClose={() => void navigate({ to: '/messages', search: filters, replace: true })}
      />
      {again === undefined ? null : (
        <PublishForm isOpen initial={valuesOfMessage(again)} onClose={() => setAgain(undefined)} />
      )}
    </Page>
  )
}

/** Whether a bulk action supports all set filters. Without the others, it would cancel more than the list shows. */
const canBeCancelled = ({ standing, search, happened, from, to }: MessageSearch): boolean =>
  [search, happened, from, to].every((filter) => filter === undefined) &&
  (standing === undefined || standing === 'unfinished')

/** Opens the wizard with the filters of the list. */
function CancelLink({ filters: { url, label, queue } }: { filters: MessageSearch }) {
  const search = given({ url, label, queue })
  return (
    <ButtonLink variant="default" to="/bulk-actions/new" search={{ kind: 'cancelMessages', ...search }}>
      Cancel in bulk…
    </ButtonLink>
  )
}

/** The progress of a search in which the browser or the server tests messages one by one. */
function searchedOf({ standing }: MessageSearch, data: Entries, shown: number): Searched | undefined {
  const last = data.pages.at(-1)
  if (last?.searchedTo !== undefined) return foundSoFar(counted(shown, 'message'), last.searchedTo)
  if (standing === undefined) return undefined
  const found = `Searched the newest ${counted(entriesOf(data), 'log entry', 'log entries')}`
  return { found, toMs: last?.logs.at(-1)?.time }
}

interface Entries {
  readonly pages: readonly { readonly logs: readonly { readonly time: number }[]; readonly searchedTo?: number }[]
}

const entriesOf = ({ pages }: Entries): number => pages.reduce((sum, { logs }) => sum + logs.length, 0)

function useMessages({ standing, search, happened, from, to, ...filters }: Omit<MessageSearch, 'publish'>) {
  const log = useApiPages(
    listLogs,
    {
      query: {
        ...filtersOf(filters),
        ...timesOf(given({ happened, from, to })),
        ...given({ search }),
        count: PAGE,
        trimBody: 0,
      },
    },
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  // All entries are read, whatever the filter: the state of a message follows from all its entries.
  const rows = useMemo(() => {
    const messages = log.data && messagesOf(log.data.pages.flatMap(({ logs }) => logs))
    return messages?.filter(({ latest }) => standing === undefined || standingOf(latest.state) === standing)
  }, [log.data, standing])
  return { log, rows }
}

function Filters({
  filters,
  onChange,
}: {
  filters: Omit<MessageSearch, 'publish'>
  onChange: (filters: MessageSearch) => void
}) {
  const set = (change: { readonly [Name in keyof MessageSearch]?: MessageSearch[Name] | undefined }) =>
    onChange(given({ ...filters, ...change }) as MessageSearch)
  const { happened, from, to } = filters
  return (
    <FilterBar
      isMoreUsed={[happened, from, to].some((value) => value !== undefined)}
      more={
        <>
          <Select
            aria-label="What happened"
            placeholder="Anything happened"
            size="xs"
            {...barField(150)}
            clearable
            data={EVENT_FILTERS.map((value) => ({ value, label: wordsOf(value).title }))}
            value={happened ?? null}
            onChange={(value) => set({ happened: EVENT_FILTERS.find((known) => known === value) })}
          />
          <MomentField label="From" value={from} onChange={(next) => set({ from: next })} />
          <MomentField label="To" value={to} onChange={(next) => set({ to: next })} />
        </>
      }
    >
      <Select
        aria-label="State"
        placeholder="All"
        size="xs"
        {...barField(130)}
        clearable
        data={STATE_FILTERS.map((value) => ({ value, label: STANDING_TITLES[value] }))}
        value={filters.standing ?? null}
        onChange={(value) => set({ standing: STATE_FILTERS.find((known) => known === value) })}
      />
      <FilterField
        label="Search ids, URLs, errors"
        isSearch
        value={filters.search}
        onChange={(search) => set({ search })}
      />
      <FilterField label="Whole URL" width={140} value={filters.url} onChange={(url) => set({ url })} />
      <FilterField label="Label" width={120} value={filters.label} onChange={(label) => set({ label })} />
      <FilterField label="Queue" width={120} value={filters.queue} onChange={(queue) => set({ queue })} />
    </FilterBar>
  )
}

/** When the next attempt is due. An overdue one waits for its queue, its flow-control key or earlier messages. */
function NextAttempt({ atMs }: { atMs: number | undefined }) {
  const now = useNow()
  if (atMs === undefined) return null
  return (
    <>
      {atMs < now ? 'due ' : ''}
      <When atMs={atMs} />
    </>
  )
}

const menuColumn = (onAgain: (message: Static<typeof Message>) => void): Column<MessageSummary> => ({
  key: 'menu',
  title: '',
  width: '3rem',
  align: 'right',
  render: (summary) => <MessageMenu summary={summary} onAgain={onAgain} />,
})

const COLUMNS: readonly Column<MessageSummary>[] = [
  {
    key: 'state',
    title: 'State',
    width: '165px',
    render: ({ latest }) => <Status tone={wordsOf(latest.state).tone}>{wordsOf(latest.state).title}</Status>,
  },
  {
    key: 'url',
    title: 'Destination',
    wraps: true,
    render: ({ latest, messageId, publishedAtMs }) => (
      <>
        <TextLink to="/messages/$id" params={{ id: messageId }} title={latest.url} className="truncate">
          <UrlText url={latest.url} />
        </TextLink>
        <Text size="xs" c="dimmed" hiddenFrom="sm">
          <When atMs={publishedAtMs} />
        </Text>
      </>
    ),
  },
  { key: 'queue', title: 'Queue', width: '90px', from: 'lg', render: ({ latest }) => latest.queueName ?? '' },
  {
    key: 'label',
    title: 'Labels',
    width: '115px',
    wraps: true,
    from: 'md',
    render: ({ latest }) => latest.labels?.join(', ') ?? '',
  },
  {
    key: 'answer',
    title: 'Response',
    width: '100px',
    from: 'sm',
    align: 'right',
    render: ({ latest }) => latest.responseStatus ?? '',
  },
  {
    key: 'next',
    title: 'Next attempt',
    width: '125px',
    from: 'md',
    render: ({ latest }) => <NextAttempt atMs={latest.nextDeliveryTime} />,
  },
]

/** The time of publication, or the time of the event if the list is filtered by one. */
const timeColumn = (isEvent: boolean): Column<MessageSummary> => ({
  key: 'published',
  title: isEvent ? 'When' : 'Published',
  width: '110px',
  from: 'sm',
  render: ({ publishedAtMs, latest }) => <When atMs={isEvent ? latest.time : publishedAtMs} />,
})
