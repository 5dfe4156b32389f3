import IconBellRinging from 'icon:bell-ringing'
import { Group, Select } from '@mantine/core'
import type { Static } from 'typebox'
import { NOTIFIED_OUTCOMES, type NotifiedOutcome } from '../../../../src/contract/workflow/event-outcomes.js'
import { listNotifiedEvents, type NotifiedEventSchema } from '../../../../src/contract/workflow/events.js'
import { LIVE_MS, useApiPages } from '../../api/hooks.js'
import type { Column } from '../../components/data-table.js'
import { barField } from '../../components/filter-bar.js'
import { TextLink } from '../../components/link.js'
import { Panel } from '../../components/page.js'
import { PagedTable } from '../../components/paged-table.js'
import { EmptyState } from '../../components/states.js'
import { Status, type Tone } from '../../components/status.js'
import { When } from '../../components/when.js'
import { bytes, counted } from '../../lib/format.js'
import { given } from '../../lib/search.js'
import { EventLink } from './event-link.js'
import type { EventSearch } from './search.js'

type NotifiedEvent = Static<typeof NotifiedEventSchema>

const PAGE = 50

const OUTCOMES: Readonly<Record<NotifiedOutcome, { readonly tone: Tone; readonly title: string }>> = {
  woke: { tone: 'ok', title: 'Runs continued' },
  kept: { tone: 'busy', title: 'Kept for its run' },
  nobody: { tone: 'idle', title: 'No run waited' },
}

interface NotifiedEventsProps {
  readonly search: EventSearch
  readonly onChange: (search: EventSearch) => void
}

/** The events that were received in the last days, with their effects. */
export function NotifiedEvents({ search, onChange }: NotifiedEventsProps) {
  const { event, outcome } = search
  const pages = useApiPages(
    listNotifiedEvents,
    { query: { ...given({ eventId: event, outcome }), count: PAGE } },
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const title = event === undefined ? 'Received events' : `Received events “${event}”`
  return (
    <Panel
      flush
      title={title}
      about="The newest 10,000 of the last 3 days, without their data."
      actions={
        <Select
          aria-label="What the event did"
          placeholder="All events"
          size="xs"
          {...barField(160)}
          clearable
          data={NOTIFIED_OUTCOMES.map((value) => ({ value, label: OUTCOMES[value].title }))}
          value={outcome ?? null}
          onChange={(value) =>
            onChange(given({ event, outcome: NOTIFIED_OUTCOMES.find((known) => known === value) }) as EventSearch)
          }
        />
      }
    >
      <PagedTable
        label="Received events"
        columns={COLUMNS}
        pages={pages}
        rows={pages.data?.pages.flatMap(({ events }) => events)}
        rowKey={({ eventId, at }, index) => `${at} ${eventId} ${index}`}
        empty={
          <EmptyState title="No events received" icon={IconBellRinging}>
            {outcome === undefined
              ? 'Every event that is sent is listed here, whether or not a run waits for it.'
              : 'Change or clear the filter.'}
          </EmptyState>
        }
      />
    </Panel>
  )
}

const COLUMNS: readonly Column<NotifiedEvent>[] = [
  {
    key: 'event',
    title: 'Event',
    render: ({ eventId }) => <EventLink id={eventId} />,
  },
  {
    key: 'outcome',
    title: 'Outcome',
    width: '160px',
    render: ({ outcome, woken }) => (
      <Status tone={OUTCOMES[outcome].tone}>
        {outcome === 'woke' ? `${counted(woken, 'run')} continued` : OUTCOMES[outcome].title}
      </Status>
    ),
  },
  { key: 'runs', title: 'Runs', from: 'sm', render: (event) => <Runs event={event} /> },
  { key: 'by', title: 'Sent by', width: '105px', from: 'lg', render: ({ by }) => SENDERS[by] },
  { key: 'size', title: 'Data', width: '85px', from: 'md', align: 'right', render: (event) => bytes(event.bytes) },
  { key: 'at', title: 'When', width: '105px', render: ({ at }) => <When atMs={at} /> },
]

const SENDERS = { token: 'Notify', webhook: 'Webhook' } as const
/** Most runs that a row shows. */
const SHOWN = 2

function Runs({ event: { workflowRunIds, woken } }: { event: NotifiedEvent }) {
  const more = Math.max(woken, workflowRunIds.length) - SHOWN
  return (
    <Group gap="xs" component="span">
      {workflowRunIds.slice(0, SHOWN).map((id) => (
        <TextLink key={id} to="/runs/$id" params={{ id }} className="truncate">
          {id}
        </TextLink>
      ))}
      {more > 0 && workflowRunIds.length > 0 ? `and ${more} more` : ''}
    </Group>
  )
}
