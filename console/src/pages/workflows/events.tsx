import IconBell from 'icon:bell'
import IconBellOff from 'icon:bell-off'
import IconSend from 'icon:send'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Static } from 'typebox'
import {
  type AwaitedEventSchema,
  listAwaitedEvents,
  listWaiters,
  WAITERS_COUNT,
  WAITERS_CURSOR,
} from '../../../../src/contract/workflow/events.js'
import { apiWithHeaders } from '../../api/client.js'
import { LIVE_MS, useApiPages, usePages } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import type { Column } from '../../components/data-table.js'
import { FilterField } from '../../components/filter-field.js'
import { TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { PagedTable } from '../../components/paged-table.js'
import { EmptyState } from '../../components/states.js'
import { When } from '../../components/when.js'
import { given } from '../../lib/search.js'
import { EventLink } from './event-link.js'
import { NotifiedEvents } from './notified-events.js'
import { NotifyForm } from './notify.js'
import type { EventSearch } from './search.js'

type AwaitedEvent = Static<typeof AwaitedEventSchema>
type Waiter = Static<(typeof listWaiters)['success']['body']>[number]

const route = getRouteApi('/shell/events')
const PAGE = 100

/** The events that runs wait for, the received ones, and the dialog that sends one. */
export function EventsPage() {
  const search = route.useSearch()
  const { event } = search
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const [isOpen, { open, close }] = useDisclosure()
  const show = (next: { event?: string | undefined; outcome?: EventSearch['outcome'] }) =>
    void navigate({ to: '/events', search: given(next) })
  return (
    <Page
      title="Events"
      about="Runs that called context.waitForEvent continue when their event is sent."
      actions={
        event !== undefined && canWrite ? (
          <Button leftSection={<IconSend size={16} />} onClick={open}>
            Send the event
          </Button>
        ) : undefined
      }
    >
      <Panel
        flush
        title={event === undefined ? 'Events that runs wait for' : `Runs that wait for “${event}”`}
        actions={
          <FilterField label="Event ID" isSearch value={event} onChange={(next) => show({ ...search, event: next })} />
        }
      >
        {event === undefined ? <AwaitedEvents /> : <Waiters event={event} />}
      </Panel>
      <NotifiedEvents search={search} onChange={show} />
      {event === undefined ? null : <NotifyForm isOpen={isOpen} onClose={close} eventId={event} />}
    </Page>
  )
}

function AwaitedEvents() {
  const pages = useApiPages(
    listAwaitedEvents,
    {},
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const rows = useMemo(() => pages.data?.pages.flatMap(({ events }) => events), [pages.data])
  return (
    <PagedTable
      label="Events that runs wait for"
      columns={EVENT_COLUMNS}
      pages={pages}
      rows={rows}
      rowKey={({ eventId }) => eventId}
      empty={
        <EmptyState title="No run waits for an event" icon={IconBell}>
          A run waits after it calls context.waitForEvent. Enter an event ID to send an event to a run that waits later.
        </EmptyState>
      }
    />
  )
}

function Waiters({ event }: { event: string }) {
  const pages = useWaiters(event)
  const rows = useMemo(() => pages.data?.pages.flatMap(({ waiters }) => waiters), [pages.data])
  return (
    <PagedTable
      label="Waiting runs"
      columns={COLUMNS}
      pages={pages}
      rows={rows}
      rowKey={(_, index) => String(index)}
      empty={
        <EmptyState title="No runs wait for this event" icon={IconBellOff}>
          An event that is sent now reaches no run. From the page of a run, it can be sent to that run alone, which gets
          it even if it starts to wait later.
        </EmptyState>
      }
    />
  )
}

function useWaiters(event: string) {
  const args = { params: { eventId: encodeURIComponent(event) } }
  return usePages(
    listWaiters,
    args,
    async (place, signal) => {
      const headers = { [WAITERS_COUNT]: String(PAGE), ...(place && { [WAITERS_CURSOR]: String(place.cursor) }) }
      const response = await apiWithHeaders(listWaiters, { ...args, headers }, signal)
      return { waiters: response.body, cursor: response.headers.get(WAITERS_CURSOR) ?? undefined }
    },
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
}

function runOf({ headers }: Waiter): string | undefined {
  const entry = Object.entries(headers).find(([name]) => name.toLowerCase() === 'upstash-workflow-runid')
  return entry?.[1][0]
}

const EVENT_COLUMNS: readonly Column<AwaitedEvent>[] = [
  {
    key: 'event',
    title: 'Event',
    render: ({ eventId }) => <EventLink id={eventId} />,
  },
  {
    key: 'runs',
    title: 'Waiting runs',
    width: '120px',
    align: 'right',
    render: ({ waiting, atLeast }) => (atLeast ? `more than ${waiting}` : waiting),
  },
  { key: 'since', title: 'Since', width: '150px', from: 'sm', render: ({ since }) => <When atMs={since} /> },
  {
    key: 'timeout',
    title: 'First times out',
    width: '150px',
    from: 'sm',
    render: ({ firstTimeout }) => <When atMs={firstTimeout} />,
  },
]

const COLUMNS: readonly Column<Waiter>[] = [
  {
    key: 'run',
    title: 'Run',
    render: (waiter) => {
      const id = runOf(waiter)
      return id === undefined ? (
        ''
      ) : (
        <TextLink to="/runs/$id" params={{ id }}>
          {id}
        </TextLink>
      )
    },
  },
  { key: 'url', title: 'Workflow', from: 'sm', render: ({ url }) => url },
  {
    key: 'until',
    title: 'Times out',
    width: '150px',
    render: ({ deadline }) => <When atMs={deadline * 1000} />,
  },
]
