import { type RawBuilder, sql } from 'kysely'
import { isPending } from '../../queue/transactions/messages.js'
import { type Carrying, carryCalls, combineCalls, write } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { type Ask, askAll, change, type Transaction } from '../../store/statement.js'
import { keepAttempts } from './runs-attempts.js'

/**
 * How long `settleDone` may wait to share a commit. The next step of the program usually arrives at the same time; then
 * both need one commit instead of two.
 */
const MAX_DELAY_MS = 10

const remove = query<DoneDelivery>(({ db, p }) =>
  db.deleteFrom('messages').where('seq', '=', p.seq).where(isPending).where('retried', '=', p.retried),
)
const removeFirstAttempts = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('messages').where(d.inNumbers('seq', p.seqs)).where(isPending).where('retried', '=', sql.lit(0)),
)

/** A finished delivery that has no effect on its run. */
export interface DoneDelivery {
  readonly seq: number
  /** The attempt that ended. */
  readonly retried: number
}

/** Deletes the message of a `DoneDelivery` and keeps its failed attempts, as part of another transaction. */
export function* deleteDone(done: DoneDelivery): Transaction<void> {
  if (done.retried > 0) yield* keepAttempts(done.seq)
  yield* change(remove, done)
}

const settleAllDone = write(
  'runs.settleAllDone',
  function* (all: readonly DoneDelivery[]): Transaction<void> {
    const seqs = all.filter(isFirstAttempt).map(({ seq }) => seq)
    if (seqs.length > 0) yield* change(removeFirstAttempts, { seqs })
    for (const done of all) if (done.retried > 0) yield* deleteDone(done)
  },
  { isSingle: (all) => all.every(isFirstAttempt) },
)

const isFirstAttempt = ({ retried }: DoneDelivery): boolean => retried === 0

/** Deletes the message of a delivery that has no effect on its run; keeps its failed attempts. */
export const settleDone = write('runs.settleDone', deleteDone, {
  maxDelayMs: MAX_DELAY_MS,
  isSingle: isFirstAttempt,
  combining: combineCalls(settleAllDone, { join: (all) => all, split: (_result, all) => all.map(() => undefined) }),
})

/** Maximum deliveries that end in the transaction of one step. */
const MAX_CARRIED = 100

/**
 * Selects and locks messages of first attempts, to delete them in a transaction that already holds other locks. It never
 * waits for these messages, because a transaction that has locked one may wait for this one. Messages that are locked, or
 * have had another attempt, are left out.
 */
const lockedSeqs = (which: RawBuilder<boolean>, condition?: RawBuilder<boolean>) =>
  sql<number>`select seq from messages where ${which} and ${isPending}
    and retried = 0${condition ? sql` and ${condition}` : sql``} for update skip locked`

/** Whether a message is one of the carried ones; locks it as `lockedSeqs` does. */
export function isCarried({ p, d }: Building<{ carried: readonly number[] }>, condition?: RawBuilder<boolean>) {
  return d.inLocked('seq', lockedSeqs(d.inNumbers('seq', p.carried), condition))
}

const removeCarried = query<{ carried: readonly number[] }, { seq: number }>((building) =>
  building.db.deleteFrom('messages').where(isCarried(building)).returning('seq'),
)
/** For one message. PostgreSQL assumes that a list is long, so it would plan the statement again for each short list. */
const removeCarriedOne = query<{ seq: number }, { seq: number }>(({ db, p }) =>
  db
    .deleteFrom('messages')
    .where(sql<boolean>`seq = (${lockedSeqs(sql<boolean>`seq = ${p.seq}`)})`)
    .returning('seq'),
)

/** Asks to delete the messages of finished deliveries, on PostgreSQL only; see `isCarried`. */
export function askRemoveCarried(carried: readonly number[]): Ask<{ seq: number }[]> {
  const [seq, ...others] = carried
  const isOne = seq !== undefined && others.length === 0
  return isOne ? askAll(removeCarriedOne, { seq }) : askAll(removeCarried, { carried })
}

/** Lets an operation delete the messages of finished deliveries in its own transaction. */
export function carryDone<Args, Result>(how: {
  readonly load: (args: Args, carried: readonly number[]) => Args
  /** The messages that the transaction has deleted. */
  readonly removedBy: (result: Result) => readonly number[]
}): Carrying {
  return carryCalls<Args, Result, DoneDelivery>(settleDone, {
    most: MAX_CARRIED,
    load: (args, calls) =>
      how.load(
        args,
        calls.map(({ seq }) => seq),
      ),
    made: (result, calls) => {
      const removed = new Set(how.removedBy(result))
      return calls.map(({ seq }) => removed.has(seq))
    },
  })
}
