import { sql } from 'kysely'
import { first, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ParentLink } from './runs-rows.js'

/**
 * A delivery whose outcome did not get through is made again, and its program then asks again for what it has asked for
 * before. A step that it sends twice is one too many in the list, which SDKs pass over. What the server itself does for
 * a step must not be done twice: a call would be made and a run invoked twice, and a wait that has had its event would
 * take the next one, which belongs to another step.
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

/** The message of the element by which the server has completed this very step; `undefined` when it has not. */
export function* answerOf(runSeq: number, step: Step): Transaction<string | undefined> {
  // What completes a step is the step itself with further members at its end.
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
 * The message of a call that was made for the same step.
 * @param mark what the JSON of every call of this step contains, and no other.
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

/** The first message of the run that was invoked for this very step, or the message by which its end was told. */
export function* invocationFor(parentSeq: number, { step }: ParentLink): Transaction<string | undefined> {
  const child = yield* first(children, { parentSeq, step: `"step":${JSON.stringify(step)}` })
  return child ? child.message_id : yield* answerOf(parentSeq, step)
}
