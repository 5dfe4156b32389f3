import { sql } from 'kysely'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { query } from '../../store/query.js'
import { type Ask, all, askAll, change, first, type Transaction, updateEach } from '../../store/statement.js'

/** Limit of kept attempts per delivery: the newest. */
const MAX_PER_DELIVERY = 20
/** A run with this many keeps no more. */
const MAX_PER_RUN = 100
/** Bytes of a response body that are kept. */
const BODY_BYTES = 4_096
/** Longer headers are left out. */
const HEADERS_LENGTH = 4_096

interface Messages {
  readonly seqs: readonly number[]
}

const TIMES = ['due_at', 'held_ms', 'finished_at'] as const

/** `retried` counts the attempts of a message without gaps, so the newest have the highest counts. */
const keep = query<Messages>(({ db, p, d }) =>
  db
    .insertInto('run_attempts')
    .columns(['run_seq', 'message_id', 'retried', 'started_at', 'status', 'headers', 'body', 'error', ...TIMES])
    .expression(
      db
        .selectFrom('message_attempts as a')
        .innerJoin('messages as m', 'm.seq', 'a.message_seq')
        .select(['m.group_key', 'm.message_id', 'a.retried', 'a.started_at', 'a.status'])
        .select([
          sql<string>`case when length(a.headers) <= ${sql.lit(HEADERS_LENGTH)} then a.headers else '{}' end`.as(
            'headers',
          ),
          sql<Uint8Array | null>`substr(a.body, 1, ${sql.lit(BODY_BYTES)})`.as('body'),
          'a.error',
          ...TIMES.map((name) => `a.${name}` as const),
        ])
        .where(d.inNumbers('a.message_seq', p.seqs))
        .where('m.state', '=', 'pending')
        .where(sql<boolean>`a.retried >= m.retried - ${sql.lit(MAX_PER_DELIVERY)}`)
        .where(sql<boolean>`(select count(*) from run_attempts where run_seq = m.group_key) < ${sql.lit(MAX_PER_RUN)}`),
    )
    .onConflict((conflict) => conflict.doNothing()),
)

interface Between {
  readonly first: number
  readonly last: number
}

interface RetriedMessage {
  readonly seq: number
  readonly group_key: number
}

/** The database answers this from the index of retried messages alone. */
const someRetried = query<Between, { group_key: number | null }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select('group_key')
    .where('group_key', '>=', p.first)
    .where('group_key', '<=', p.last)
    .where('state', '=', sql.lit('pending'))
    .where('retried', '>', sql.lit(0))
    .limit(1),
)
const retriedMessages = query<{ runs: readonly number[] }, RetriedMessage>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', sql<number>`group_key`.as('group_key')])
    .where(d.inNumbers('group_key', p.runs))
    .where('state', '=', sql.lit('pending'))
    .where('retried', '>', sql.lit(0))
    .orderBy('seq'),
)

/** Keeps the failed attempts of a message that is deleted without failing its run, for the log of the run. */
export function* keepAttempts(messageSeq: number): Transaction<void> {
  yield* change(keep, { seqs: [messageSeq] })
}

/**
 * Keeps the failed attempts of all pending messages of runs that are about to end. Most often there are none; one query
 * finds that out for thousands of runs.
 */
export function* keepAttemptsOfRuns(runs: readonly number[]): Transaction<void> {
  if (runs.length === 0 || !(yield* first(someRetried, spanOf(runs)))) return
  for (const seqs of roundsOf(yield* all(retriedMessages, { runs }))) yield* change(keep, { seqs })
}

/** Returns a row if one of these runs may have attempts for `keepAttemptsOfRuns`. @param runs at least one. */
export function askAttemptsToKeep(runs: readonly number[]): Ask<object[]> {
  return askAll(someRetried, spanOf(runs))
}

const restore = query<Messages>(({ db, p, d }) =>
  db
    .insertInto('message_attempts')
    .columns(['message_seq', 'retried', 'started_at', 'status', 'headers', 'body', 'error', ...TIMES, 'next_at'])
    .expression(
      db
        .selectFrom('run_attempts as a')
        .innerJoin('messages as m', (join) =>
          join.onRef('m.group_key', '=', 'a.run_seq').onRef('m.message_id', '=', 'a.message_id'),
        )
        .select(['m.seq', 'a.retried', 'a.started_at', 'a.status', 'a.headers', 'a.body', 'a.error'])
        .select(['a.due_at', 'a.held_ms'])
        .select(sql<number>`coalesce(a.finished_at, a.started_at)`.as('finished_at'))
        .select(sql<number>`coalesce(a.finished_at, a.started_at)`.as('next_at'))
        .where(d.inNumbers('m.seq', p.seqs)),
    ),
)
const forget = query<{ runs: readonly number[]; messageIds: readonly string[] }>(({ db, p, d }) =>
  db.deleteFrom('run_attempts').where(d.inNumbers('run_seq', p.runs)).where(d.inTexts('message_id', p.messageIds)),
)

/** Restores the failed attempts of deliveries, and their number of retries, as before `keepAttemptsOfRuns`. */
export function* restoreAttempts(
  messages: readonly Pick<PendingRow, 'seq' | 'group_key' | 'message_id' | 'retried'>[],
): Transaction<void> {
  const rows = messages.map(({ seq, retried }) => ({ seq, retried }))
  yield* updateEach('messages', rows, { match: ['seq'], where: { state: 'pending' } })
  yield* change(restore, { seqs: messages.map(({ seq }) => seq) })
  const runs = messages.map(({ group_key }) => group_key ?? 0)
  yield* change(forget, { runs, messageIds: messages.map(({ message_id }) => message_id) })
}

function spanOf(seqs: readonly number[]): Between {
  let [least, greatest] = [Number.POSITIVE_INFINITY, 0]
  for (const seq of seqs) {
    if (seq < least) least = seq
    if (seq > greatest) greatest = seq
  }
  return { first: least, last: greatest }
}

/** Splits messages into rounds with at most one message of a run: each INSERT checks the limit of a run only once. */
function roundsOf(messages: readonly RetriedMessage[]): readonly number[][] {
  const sorted: number[][] = []
  const ofRun = new Map<number, number>()
  for (const { seq, group_key } of messages) {
    const round = ofRun.get(group_key) ?? 0
    ofRun.set(group_key, round + 1)
    const seqs = sorted[round] ?? []
    seqs.push(seq)
    sorted[round] = seqs
  }
  return sorted
}
