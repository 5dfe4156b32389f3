import type { Static } from 'typebox'
import type { Event } from '../../contract/queue/fields.js'
import { listLogs } from '../../contract/queue/messages.js'
import { MESSAGE_WORDS } from '../../contract/words/states.js'
import { notFound } from '../errors.js'
import { DONE, FAILED } from '../exit-codes.js'
import type { Api } from '../remote/api.js'
import { remote, type Session } from '../remote/remote.js'
import { NewEntries, printEntry, readings } from '../remote/watching.js'
import { moment } from '../terminal/figures.js'
import { paintOf, printable, toneOf } from '../terminal/text.js'
import { type FilterOptions, filterFlags, filtersOf } from './filters.js'

type Entry = Static<typeof Event>

const PAGE = 1_000
/** An entry may become visible up to this long after its time, when its transaction commits. */
const LATE_MS = 10_000
const ENDS: ReadonlySet<string> = new Set(['DELIVERED', 'FAILED', 'CANCELED'])

/** `homeport queue watch`. */
export const watchCommand = remote<FilterOptions, [string[]]>({
  name: 'watch',
  summary:
    'follow messages: those with these ids to their end, otherwise all that match the filters until Ctrl-C, from now on or since --from',
  args: [['[ids...]', 'ids of messages; exit code 1 unless all of them are delivered']],
  flags: filterFlags,
  isStream: true,
  examples: ['homeport queue watch msg_…', 'homeport queue watch --label orders', 'homeport queue watch --json | jq'],
  run: async (session, options, ids) => (ids.length > 0 ? toTheEnd(session, ids) : untilStopped(session, options)),
})

async function toTheEnd(session: Session, ids: readonly string[]): Promise<void> {
  const entries = new NewEntries<Entry>(keyOf)
  const ends = new Map<string, string>()
  for await (const found of readings(() => entriesOf(session.api, { messageId: [...ids] }))) {
    refuseUnknown(ids, found)
    for (const entry of entries.take(found)) {
      printEntry(session, entry, () => lineOf(session, entry))
      if (ENDS.has(entry.state)) ends.set(entry.messageId, entry.state)
    }
    if (ids.every((id) => ends.has(id))) break
  }
  session.endWith([...ends.values()].every((state) => state === 'DELIVERED') ? DONE : FAILED)
}

/** Prints new entries until Ctrl-C, beginning with the time of `--from`, or now. */
async function untilStopped(session: Session, options: FilterOptions): Promise<void> {
  const filters = filtersOf(options)
  const entries = new NewEntries<Entry>(keyOf)
  const begin = filters.fromDate ?? (await serverTime(session.api))
  let newest = begin
  // A long reading misses entries that are added to pages which it has already read. The next reading goes back that far.
  let windowMs = LATE_MS
  const read = async () => {
    const beganMs = performance.now()
    const found = await entriesOf(session.api, { ...filters, fromDate: Math.max(begin, newest - windowMs) })
    windowMs = LATE_MS + Math.ceil(performance.now() - beganMs)
    return found
  }
  for await (const found of readings(read)) {
    for (const entry of entries.take(found)) {
      printEntry(session, entry, () => lineOf(session, entry))
      newest = Math.max(newest, entry.time)
    }
    entries.forgetBefore(newest - windowMs)
  }
}

/** The current time by the clock of the server. */
async function serverTime(api: Api): Promise<number> {
  const response = await api.stream(listLogs, { query: { count: 1 } })
  await response.body?.cancel()
  return Date.parse(response.headers.get('date') ?? '') || Date.now()
}

/** Reads all pages of entries. */
async function entriesOf(api: Api, filters: object): Promise<Entry[]> {
  const found: Entry[] = []
  let cursor: string | undefined
  do {
    const query = { ...filters, count: PAGE, trimBody: 0, ...(cursor !== undefined && { cursor }) }
    const page = await api.call(listLogs, { query })
    found.push(...page.logs)
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}

function refuseUnknown(ids: readonly string[], found: readonly Entry[]): void {
  const unknown = ids.find((id) => !found.some(({ messageId }) => messageId === id))
  if (unknown === undefined) return
  const problem = `There is no message "${unknown}" in the log. See: homeport queue logs.`
  throw notFound(problem)
}

const keyOf = ({ messageId, state, time, nextDeliveryTime }: Entry): string =>
  [messageId, state, time, nextDeliveryTime].join(' ')

function lineOf({ io }: Session, entry: Entry): string {
  const { time, messageId, state, responseStatus, url, error, nextDeliveryTime } = entry
  const facts = [
    responseStatus !== undefined && `HTTP ${responseStatus}`,
    url,
    error,
    state === 'RETRY' && nextDeliveryTime !== undefined && `again at ${moment(nextDeliveryTime)}`,
  ]
  const words = facts.filter((fact) => typeof fact === 'string').map(printable)
  return `${[moment(time), messageId, paintOf(io)(toneOf(MESSAGE_WORDS[state]), MESSAGE_WORDS[state].word), ...words].join('  ')}\n`
}
