import type { Static } from 'typebox'
import type { Event, MessageLog } from '../../contract/queue/fields.js'

type EventView = Static<typeof Event>
/** A message with entries of its log, as the wire shows it. */
export type MessageLogView = Static<typeof MessageLog>
type Entry = MessageLogView['events'][number]

/** Members that belong to a single entry. All others are the same in all entries of a message. */
const OF_ENTRY: ReadonlySet<string> = new Set<keyof Entry>([
  'time',
  'state',
  'error',
  'nextDeliveryTime',
  'responseStatus',
  'responseBody',
  'responseHeader',
  'responseHeaders',
])

/** Entries of the log by message, in the order in which the messages first appear. */
export function groupByMessage(events: readonly EventView[]): MessageLogView[] {
  const groups = new Map<string, MessageLogView>()
  for (const event of events) {
    const group = groups.get(event.messageId)
    if (group) group.events.push(entryOf(event))
    else groups.set(event.messageId, { ...sharedOf(event), events: [entryOf(event)] })
  }
  return [...groups.values()]
}

function sharedOf(event: EventView): Omit<MessageLogView, 'events'> {
  const { time, state, error, nextDeliveryTime, responseStatus, responseBody, ...rest } = event
  const { responseHeader, responseHeaders, ...shared } = rest
  return shared
}

function entryOf(event: EventView): Entry {
  const { time, state } = event
  return { time, state, ...Object.fromEntries(Object.entries(event).filter(([name]) => OF_ENTRY.has(name))) }
}
