/**
 * Received events: one small row for each notification, written in the commit of its first batch. Rows are deleted after
 * some days, and the oldest of an account earlier if it has too many.
 */
import { type RawBuilder, sql } from 'kysely'
import { isYoung } from '../../queue/transactions/messages-retention.js'
import type { Dialect } from '../../store/dialect.js'
import { read, write } from '../../store/operation.js'
import { queriesByShape, query } from '../../store/query.js'
import type { NotifiedEventsTable, NotifiedOutcome } from '../../store/schema/runs.js'
import { type Ask, all, askChange, askInsert, change, first, type Transaction } from '../../store/statement.js'

/** Maximum runs that a row names; further ones are only counted. */
const MAX_NAMED = 10
/** Maximum rows that are kept of each account; a page reads no more. */
export const MAX_NOTIFIED = 10_000

/** The effect of a notification. */
export interface Notified {
  readonly accountId: string
  readonly eventId: string
  readonly source: NotifiedEventsTable['source']
  readonly outcome: NotifiedOutcome
  /** `runs.seq` of the runs that continue, or of the run that keeps the event. */
  readonly runs: readonly number[]
  /** Size of the data. */
  readonly bytes: number
  /** Unix milliseconds. */
  readonly at: number
}

/** Asks to insert the row of a notification. */
export function askNote({ accountId, eventId, runs, outcome, ...rest }: Notified): Ask<void> {
  const row = {
    ...rest,
    outcome,
    account_id: accountId,
    event_id: eventId,
    woken: outcome === 'woke' ? runs.length : 0,
    runs: JSON.stringify(runs.slice(0, MAX_NAMED)),
  }
  return askInsert('notified_events', [row])
}

const addWoken = query<Omit<Notified, 'source' | 'outcome' | 'bytes' | 'runs'> & { woken: number }>(({ db, p }) =>
  db
    .updateTable('notified_events')
    .set({ woken: sql<number>`woken + ${p.woken}`, outcome: sql.lit('woke') })
    .where('seq', '=', (q) =>
      q
        .selectFrom('notified_events')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('event_id', '=', p.eventId)
        .where('at', '=', p.at)
        .orderBy('seq', 'desc')
        .limit(1),
    ),
)

/** Asks to add the runs of a later batch to the row of a notification, which ends waits batch by batch. */
export function askNoteMore({ runs, ...which }: Pick<Notified, 'accountId' | 'eventId' | 'at' | 'runs'>): Ask<number> {
  return askChange(addWoken, { ...which, woken: runs.length })
}

/** Selects a page of received events, newest first. */
export interface NotifiedArgs {
  readonly accountId: string
  readonly filter: {
    readonly eventId?: string
    /** Only events whose id begins like this. */
    readonly prefix?: string
    readonly outcome?: NotifiedOutcome
    /** Unix milliseconds, both included. */
    readonly from?: number
    readonly to?: number
  }
  /** Only rows with a smaller `seq`. */
  readonly before: number
  readonly limit: number
}

/** A received event. */
export interface NotifiedEvent {
  readonly seq: number
  readonly eventId: string
  readonly source: NotifiedEventsTable['source']
  readonly outcome: NotifiedOutcome
  readonly woken: number
  /** Ids of the named runs that are still stored. */
  readonly runIds: readonly string[]
  readonly bytes: number
  readonly at: number
}

type Params = NotifiedArgs['filter'] & Omit<NotifiedArgs, 'filter'> & { readonly least: number }
type Row = Omit<NotifiedEventsTable, 'seq'> & { readonly seq: number }
type Condition = (d: Dialect, p: Required<Params>) => RawBuilder<boolean>

const CONDITIONS = {
  eventId: (_, p) => sql<boolean>`event_id = ${p.eventId}`,
  prefix: (d, p) => d.startsWith('event_id', p.prefix),
  outcome: (_, p) => sql<boolean>`outcome = ${p.outcome}`,
  from: (_, p) => sql<boolean>`at >= ${p.from}`,
  to: (_, p) => sql<boolean>`at <= ${p.to}`,
} satisfies Record<string, Condition>

type Shape = readonly (keyof typeof CONDITIONS)[]

const matching = queriesByShape<[Shape], Params, Row>(({ db, p, d }, shape) => {
  let events = db
    .selectFrom('notified_events')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('seq', '<', p.before)
    .where('seq', '>=', p.least)
  for (const name of shape) events = events.where(CONDITIONS[name](d, p as Required<Params>))
  return events.orderBy('seq', 'desc').limit(p.limit)
})

const oldestOf = query<{ accountId: string; keep: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('notified_events')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .orderBy('seq', 'desc')
    .offset(sql<number>`${p.keep} - 1`)
    .limit(1),
)
const runIds = query<{ accountId: string; seqs: readonly number[] }, { seq: number; run_id: string }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id'])
    .where(d.inNumbers('seq', p.seqs))
    .where(d.alsoIs('account_id', p.accountId)),
)

/** A page of the newest events of an account. */
export const notified = read('runs.notified', function* (args: NotifiedArgs): Transaction<readonly NotifiedEvent[]> {
  const { accountId, filter, before, limit } = args
  const names = (Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]).filter((name) => filter[name] !== undefined)
  const least = (yield* first(oldestOf, { accountId, keep: MAX_NOTIFIED }))?.seq ?? 0
  const rows = yield* all(matching(names), { ...filter, accountId, before, limit, least })
  const seqs = [...new Set(rows.flatMap(({ runs }) => seqsIn(runs)))]
  const found = seqs.length === 0 ? [] : yield* all(runIds, { accountId, seqs })
  const idOf = new Map(found.map(({ seq, run_id }) => [seq, run_id]))
  return rows.map(({ seq, event_id, source, outcome, woken, runs, bytes, at }) => ({
    seq,
    eventId: event_id,
    source,
    outcome,
    woken,
    bytes,
    at,
    runIds: seqsIn(runs).flatMap((run) => idOf.get(run) ?? []),
  }))
})

// This module wrote it with the row.
const seqsIn = (runs: string): readonly number[] => JSON.parse(runs) as number[]

const nextRows = query<{ after: number; limit: number }, { seq: number; at: number }>(({ db, p }) =>
  db.selectFrom('notified_events').select(['seq', 'at']).where('seq', '>', p.after).orderBy('seq').limit(p.limit),
)
const nextAccount = query<{ after: string }, { account_id: string }>(({ db, p }) =>
  db
    .selectFrom('notified_events')
    .select('account_id')
    .where('account_id', '>', p.after)
    .orderBy('account_id')
    .limit(1),
)
const beyond = query<{ accountId: string; before: number; limit: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('notified_events')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('seq', '<', p.before)
    .orderBy('seq')
    .limit(p.limit),
)
const remove = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('notified_events').where(d.inNumbers('seq', p.seqs)),
)

/**
 * One batch of a sweep by age: reads the next rows, and deletes the rows that are older than `before`.
 * @returns the `seq` to continue after; `undefined` when the rest is too young.
 */
export const sweepNotified = write(
  'runs.sweepNotified',
  function* (args: { after: number; before: number; now: number; limit: number }): Transaction<number | undefined> {
    const rows = yield* all(nextRows, args)
    const seqs = rows.filter(({ at }) => at < args.before).map(({ seq }) => seq)
    if (seqs.length > 0) yield* change(remove, { seqs })
    const last = rows.at(-1)
    const isLast = last && isYoung(last.at, { finishedBefore: args.before, now: args.now })
    return last && rows.length === args.limit && !isLast ? last.seq : undefined
  },
  { turn: 'background' },
)

/** Where a sweep by number continues: with the same account, or with the one after it. */
export interface NotifiedPlace {
  readonly after: string
}

/**
 * One batch of a sweep by number: deletes the oldest rows of the next account beyond what it may keep.
 * @returns where to continue; `undefined` after the last account.
 */
export const trimNotified = write(
  'runs.trimNotified',
  function* (args: { after: string; keep: number; limit: number }): Transaction<NotifiedPlace | undefined> {
    const { keep } = args
    const account = yield* first(nextAccount, { after: args.after })
    if (!account) return undefined
    const { account_id: accountId } = account
    const before = (yield* first(oldestOf, { accountId, keep }))?.seq
    const rows = before === undefined ? [] : yield* all(beyond, { accountId, before, limit: args.limit })
    if (rows.length > 0) yield* change(remove, { seqs: rows.map(({ seq }) => seq) })
    return { after: rows.length === args.limit ? args.after : accountId }
  },
  { turn: 'background' },
)
