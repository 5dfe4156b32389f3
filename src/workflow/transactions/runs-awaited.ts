import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, first, only, type Transaction } from '../../store/statement.js'
import type { WaitRow } from './runs-wait.js'

/** Waits for one event that are counted; a larger number is shown as "at least". */
const MAX_COUNTED = 1_000

/** An event that runs wait for. Times are Unix milliseconds. */
export interface AwaitedEvent {
  readonly eventId: string
  /** Number of waits for the event; 1,000 if `isMore`. */
  readonly waits: number
  readonly isMore: boolean
  /** When the oldest counted wait began, and when the first one times out. */
  readonly since: number
  readonly firstDeadline: number
}

/** Selects a page of awaited events. */
export interface AwaitedArgs {
  readonly accountId: string
  /** Only ids that begin like this; empty: all. */
  readonly prefix: string
  /** Only ids after this one. */
  readonly after: string | undefined
  readonly limit: number
}

interface Place {
  accountId: string
  eventId: string
}

const from = query<Place, { event_id: string }>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select('event_id')
    .where('account_id', '=', p.accountId)
    .where('event_id', '>=', p.eventId)
    .orderBy('event_id')
    .limit(1),
)

const after = query<Place, { event_id: string }>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select('event_id')
    .where('account_id', '=', p.accountId)
    .where('event_id', '>', p.eventId)
    .orderBy('event_id')
    .limit(1),
)

const counted = query<Place & { most: number }, { waits: number; since: number; deadline: number }>(({ db, p }) =>
  db
    .selectFrom((q) =>
      q
        .selectFrom('run_waits')
        .select(['created_at', 'deadline'])
        .where('account_id', '=', p.accountId)
        .where('event_id', '=', p.eventId)
        .limit(p.most)
        .as('some'),
    )
    .select((q) => [
      q.fn.countAll<number>().as('waits'),
      q.fn.min<number>('created_at').as('since'),
      q.fn.min<number>('deadline').as('deadline'),
    ]),
)

/**
 * The events that runs of an account wait for, ordered by id. Each event costs one index lookup and at most 1,001 rows, so
 * the cost of a page is bounded however many runs wait.
 */
export const awaited = read('runs.awaited', function* (args: AwaitedArgs): Transaction<readonly AwaitedEvent[]> {
  const { accountId, prefix, limit } = args
  const events: AwaitedEvent[] = []
  let next = yield* first(args.after === undefined ? from : after, { accountId, eventId: args.after ?? prefix })
  while (next?.event_id.startsWith(prefix) && events.length < limit) {
    const eventId = next.event_id
    const { waits, since, deadline } = yield* only(counted, { accountId, eventId, most: MAX_COUNTED + 1 })
    const isMore = waits > MAX_COUNTED
    events.push({ eventId, waits: isMore ? MAX_COUNTED : waits, isMore, since, firstDeadline: deadline })
    next = yield* first(after, { accountId, eventId })
  }
  return events
})

/** Selects a page of the waits for an event: those with a larger `seq` than `after`. */
export interface WaitersArgs {
  readonly accountId: string
  readonly eventId: string
  readonly after: number
  readonly limit: number
}

/** Maximum bytes of the waits of one page, unless one wait is larger. */
const BYTES_OF_PAGE = 16 * 2 ** 20

const waitSizes = query<WaitersArgs, { seq: number; bytes: number }>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select(['seq', sql<number>`octet_length(wait)`.as('bytes')])
    .where('account_id', '=', p.accountId)
    .where('event_id', '=', p.eventId)
    .where('seq', '>', p.after)
    .orderBy('seq')
    .limit(p.limit),
)
const waitsUpTo = query<WaitersArgs & { upTo: number }, WaitRow>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('event_id', '=', p.eventId)
    .where('seq', '>', p.after)
    .where('seq', '<=', p.upTo)
    .orderBy('seq')
    .limit(p.limit),
)

/** A page of the waits for an event, oldest first. `next`: other waits follow after this `seq`. */
export const waiters = read(
  'runs.waiters',
  function* (args: WaitersArgs & { readonly maxBytes?: number }): Transaction<{ waits: WaitRow[]; next?: number }> {
    const { limit, maxBytes = BYTES_OF_PAGE, ...of } = args
    const sizes = yield* all(waitSizes, { ...of, limit: limit + 1 })
    const last = lastOfPage(sizes.slice(0, limit), maxBytes)
    if (last === undefined) return { waits: [] }
    const waits = yield* all(waitsUpTo, { ...of, limit, upTo: last })
    return waits.length < sizes.length ? { waits, next: last } : { waits }
  },
)

function lastOfPage(sizes: readonly { readonly seq: number; readonly bytes: number }[], most: number) {
  let last: number | undefined
  let total = 0
  for (const { seq, bytes } of sizes) {
    total += bytes
    if (last !== undefined && total > most) break
    last = seq
  }
  return last
}
