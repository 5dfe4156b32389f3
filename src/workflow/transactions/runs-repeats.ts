import { sql } from 'kysely'
import { query } from '../../store/query.js'
import { first, type Transaction } from '../../store/statement.js'
import type { ParentLink } from './runs-rows.js'

/**
 * Idempotency of steps. If the outcome of a delivery is lost, the delivery is repeated, and the program sends the same
 * requests again. A duplicate step in the list is harmless, because SDKs skip it. But the server must not act twice for a
 * step: it would repeat a call or invoke a second run, and a finished wait would take the next event, which belongs to
 * another step.
 */

type Step = Readonly<Record<string, unknown>>

const answered = query<{ runSeq: number; beginning: Uint8Array; length: number }, { message_id: string }>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select('message_id')
    .where('run_seq', '=', p.runSeq)
    .where('kind', '=', 'step')
    .where('position', '>', 0)
    .where(sql<boolean>`substr(body, 1, ${p.length}) = ${p.beginning}`)
    .limit(1),
)

/** The message of the element with which the server completed this step; `undefined` if the step is not complete. */
export function* answerOf(runSeq: number, step: Step): Transaction<string | undefined> {
  // The server completes a step by adding fields at the end of its JSON.
  const beginning = Buffer.from(`${JSON.stringify(step).slice(0, -1)},`)
  return (yield* first(answered, { runSeq, beginning, length: beginning.byteLength }))?.message_id
}

const calls = query<{ runSeq: number; mark: string }, { message_id: string }>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .select('message_id')
    .where('run_seq', '=', p.runSeq)
    .where('kind', '=', 'toCallback')
    .where(d.contains('meta', p.mark))
    .limit(1),
)

/**
 * The message of an earlier call for the same step.
 * @param mark text that only the JSON of calls for this step contains.
 */
export function* callFor(runSeq: number, mark: string): Transaction<string | undefined> {
  return (yield* first(calls, { runSeq, mark }))?.message_id
}

const children = query<{ parentSeq: number; step: string }, { message_id: string }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .innerJoin('steps', 'steps.run_seq', 'runs.seq')
    .select('steps.message_id')
    .where('runs.parent_seq', '=', p.parentSeq)
    .where('steps.position', '=', 0)
    .where(d.contains('runs.parent', p.step))
    .limit(1),
)

/** The first message of the run that this step invoked, or the message that reported its end. */
export function* invocationFor(parentSeq: number, { step }: ParentLink): Transaction<string | undefined> {
  const child = yield* first(children, { parentSeq, step: `"step":${JSON.stringify(step)}` })
  return child ? child.message_id : yield* answerOf(parentSeq, step)
}
