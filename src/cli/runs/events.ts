import type { Static } from 'typebox'
import { NOTIFIED_OUTCOMES, type NotifiedOutcome } from '../../contract/workflow/event-outcomes.js'
import {
  type AwaitedEventSchema,
  listAwaitedEvents,
  listNotifiedEvents,
  listWaiters,
  MAX_WAITERS_OF_PAGE,
  type NotifiedEventSchema,
  notifyEvent,
  WAITERS_COUNT,
  WAITERS_CURSOR,
} from '../../contract/workflow/events.js'
import { moreBelow, pageFlags } from '../queue/filters.js'
import { bodyOf, type DeliveryOptions } from '../queue/settings.js'
import { parsed } from '../remote/api.js'
import { remote, type Session } from '../remote/remote.js'
import { given, oneOf } from '../remote/values.js'
import { counted, moment } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'

type AwaitedEvent = Static<typeof AwaitedEventSchema>
type NotifiedEvent = Static<typeof NotifiedEventSchema>

interface WaitersOptions {
  readonly prefix?: string
  readonly count: number
  readonly cursor?: string
}

/** `homeport runs waiters`. */
export const waitersCommand = remote<WaitersOptions, [string?]>({
  name: 'waiters',
  summary: 'list the runs that wait for an event, or the events that runs wait for',
  args: [['[event]', 'id of the event (default: all events)']],
  flags: (command) =>
    pageFlags(command.option('--prefix <text>', 'only events whose id begins with this text'), MAX_EVENTS),
  examples: ['homeport runs waiters', 'homeport runs waiters --prefix paid-', 'homeport runs waiters paid-42'],
  run: async (session, options, eventId) =>
    eventId === undefined ? showEvents(session, options) : showWaiters(session, eventId, options),
})

async function showEvents({ api, io, show, say }: Session, options: WaitersOptions): Promise<void> {
  const { prefix, cursor, count } = options
  const query = given({ prefix, cursor, count: Math.min(count, MAX_EVENTS) })
  const { events, ...page } = await api.call(listAwaitedEvents, { query })
  const columns: Column<AwaitedEvent>[] = [
    { title: 'EVENT', cuts: true, value: (one) => one.eventId },
    { title: 'RUNS', value: (one) => `${one.waiting}${one.atLeast ? '+' : ''}` },
    { title: 'SINCE', value: (one) => moment(one.since) },
    { title: 'FIRST TIMEOUT', value: (one) => moment(one.firstTimeout) },
  ]
  show(events, () => renderTable(io, columns, events, 'No run waits for an event.\n'))
  if (page.cursor !== undefined) say(moreBelow(page).trimEnd())
}

async function showWaiters({ api, io, show, say }: Session, eventId: string, options: WaitersOptions): Promise<void> {
  const { count, cursor } = options
  const headers = given({ [WAITERS_COUNT]: String(Math.min(count, MAX_WAITERS_OF_PAGE)), [WAITERS_CURSOR]: cursor })
  const answer = await api.send(listWaiters, { params: { eventId: encodeURIComponent(eventId) }, headers })
  const waiters = parsed(listWaiters.success.body, answer.value)
  const next = answer.headers.get(WAITERS_CURSOR)
  type Waiter = (typeof waiters)[number]
  const columns: Column<Waiter>[] = [
    { title: 'RUN', value: (one) => runOf(one.headers) },
    { title: 'TIMES OUT', value: (one) => moment(one.deadline * 1000) },
    { title: 'URL', cuts: true, value: (one) => one.url },
  ]
  show(waiters, () => renderTable(io, columns, waiters, 'No runs wait for this event.\n'))
  if (next !== null) say(moreBelow({ cursor: next }).trimEnd())
}

function runOf(headers: Readonly<Record<string, readonly string[]>>): string | undefined {
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === 'upstash-workflow-runid')
  return found?.[1][0]
}

interface EventOptions {
  readonly prefix?: string
  readonly outcome?: NotifiedOutcome
  readonly count: number
  readonly cursor?: string
}

const MAX_EVENTS = 100

/** `homeport runs events`. */
export const eventsCommand = remote<EventOptions, [string?]>({
  name: 'events',
  summary: 'list the events of the last 3 days, and what each one did',
  args: [['[event]', 'id of the event (default: all events)']],
  flags: (command) => {
    command.option('--prefix <text>', 'only events whose id begins with this text')
    command.option('--outcome <outcome>', NOTIFIED_OUTCOMES.join(', '), oneOf(NOTIFIED_OUTCOMES))
    return pageFlags(command, 20)
  },
  examples: ['homeport runs events', 'homeport runs events paid-42', 'homeport runs events --outcome nobody'],
  run: async ({ api, io, show }, { prefix, outcome, count, cursor }, eventId) => {
    const query = given({ prefix, outcome, cursor, eventId, count: Math.min(count, MAX_EVENTS) })
    const page = await api.call(listNotifiedEvents, { query })
    const columns: Column<NotifiedEvent>[] = [
      { title: 'WHEN', value: (one) => moment(one.at) },
      { title: 'EVENT', cuts: true, value: (one) => one.eventId },
      {
        title: 'OUTCOME',
        value: (one) => (one.outcome === 'woke' ? `woke ${counted(one.woken, 'run')}` : one.outcome),
      },
      { title: 'BYTES', value: (one) => String(one.bytes) },
      { title: 'RUNS', cuts: true, value: (one) => one.workflowRunIds.join(', ') },
    ]
    const text = () => renderTable(io, columns, page.events) + moreBelow(page)
    show(page, () => (page.events.length === 0 ? 'There are no events.\n' : text()))
  },
})

/** `homeport runs notify`. */
export const notifyCommand = remote<DeliveryOptions & { run?: string }>({
  name: 'notify',
  summary: 'notify the runs that wait for an event',
  args: [['<event>', 'id of the event']],
  flags: (command) =>
    command
      .option('--body <text>', 'the data of the event')
      .option('--file <path>', 'read the data from a file; "-" for the standard input')
      .option('--run <id>', 'notify only this run, even if it starts to wait later'),
  examples: [`homeport runs notify paid-42 --body '{"amount": 10}'`],
  run: async (session, options, eventId) => {
    const { api, show } = session
    const event = [options.run, eventId].filter((one) => one !== undefined).map(encodeURIComponent)
    const body = await bodyOf(session, options)
    const notified = await api.call(notifyEvent, { params: { event: event.join('/') }, body })
    show(notified, () => `notified ${counted(notified.length, 'run')}\n`)
  },
})
