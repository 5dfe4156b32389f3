import { sql } from 'kysely'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { unparkGroups } from '../../queue/transactions/messages-parked.js'
import { checksumOf } from '../../store/checksum.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RunState } from '../../store/schema/runs.js'
import { askAll, askChange, atOnce, first, type Transaction } from '../../store/statement.js'
import { askRemoveCarried, carryDone } from './runs-done.js'
import { type EndedChild, notifyParents } from './runs-parents.js'

/** The end of a run whose program has returned. */
export interface FinishRunArgs {
  readonly accountId: string
  readonly runId: string
  /** The returned value, as text. */
  readonly response: string
  readonly at: number
  /** `messages.seq` of deliveries that are over and end with the run, on PostgreSQL only. */
  readonly carried?: readonly number[]
}

/** `already`: the run had ended before, in `state`; nothing was changed. */
export type FinishRunResult =
  | {
      readonly kind: 'finished'
      readonly runSeq: number
      readonly offers: readonly PendingRow[]
      /** The carried deliveries that have ended. */
      readonly removed?: readonly number[]
    }
  | { readonly kind: 'already'; readonly state: RunState }
  | { readonly kind: 'missing' }

const succeed = query<FinishRunArgs & { crc: number | null }, EndedChild & { seq: number; paused_at: number | null }>(
  ({ db, p }) =>
    db
      .updateTable('runs')
      .set({ state: 'RUN_SUCCESS', finished_at: p.at, response: p.response, response_crc: p.crc })
      .where('account_id', '=', p.accountId)
      .where('run_id', '=', p.runId)
      .where('state', '=', sql.lit('RUN_STARTED'))
      .returning(['seq', 'parent_seq', 'parent', 'paused_at']),
)
/** Does the same, but only for a run that no other run invoked and that is not paused. */
const succeedAlone = query<FinishRunArgs & { crc: number | null }, { seq: number }>(({ db, p }) =>
  db
    .updateTable('runs')
    .set({ state: 'RUN_SUCCESS', finished_at: p.at, response: p.response, response_crc: p.crc })
    .where('account_id', '=', p.accountId)
    .where('run_id', '=', p.runId)
    .where('state', '=', sql.lit('RUN_STARTED'))
    .where('parent_seq', 'is', null)
    .where('paused_at', 'is', null)
    .returning('seq'),
)
const stateOf = query<{ accountId: string; runId: string }, { state: RunState }>(({ db, p }) =>
  db.selectFrom('runs').select('state').where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
)

/** Deletes the waits of a run if it has ended in any way. */
const dropWaits = query<{ accountId: string; runId: string }>(({ db, p }) =>
  db
    .deleteFrom('run_waits')
    .where('run_seq', '=', (q) =>
      q
        .selectFrom('runs')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('run_id', '=', p.runId)
        .where('state', '<>', sql.lit('RUN_STARTED')),
    ),
)

/** Ends a run that no other run invoked, in one round trip. */
const finishAlone = write('runs.finishAlone', function* (args: FinishRunArgs): Transaction<
  FinishRunResult | undefined
> {
  const named = { accountId: args.accountId, runId: args.runId }
  const asks = [askAll(succeedAlone, { ...args, crc: checksumOf(args.response) }), askChange(dropWaits, named)] as const
  if (!args.carried) {
    const [[ended]] = yield* atOnce(asks, 'last')
    return ended && { kind: 'finished', runSeq: ended.seq, offers: [] }
  }
  const [[ended], , removed] = yield* atOnce([...asks, askRemoveCarried(args.carried)], 'last')
  return ended && { kind: 'finished', runSeq: ended.seq, offers: [], removed: removed.map(({ seq }) => seq) }
})

/**
 * Ends a run with success. Its pending messages stay: the delivery that led here is still in flight, and any other message
 * is deleted when it is due, because its run has ended.
 */
export const finishRun = write('runs.finish', finish, {
  shortcut: { operation: finishAlone, fits: () => true },
  carrying: carryDone({
    load: (args: FinishRunArgs, carried) => ({ ...args, carried }),
    removedBy: (result: FinishRunResult) => (result.kind === 'finished' ? (result.removed ?? []) : []),
  }),
})

function* finish(args: FinishRunArgs): Transaction<FinishRunResult> {
  const named = { accountId: args.accountId, runId: args.runId }
  const [[ended]] = yield* atOnce([
    askAll(succeed, { ...args, crc: checksumOf(args.response) }),
    askChange(dropWaits, named),
  ])
  if (!ended) {
    const found = yield* first(stateOf, named)
    return found ? { kind: 'already', state: found.state } : { kind: 'missing' }
  }
  const end = { body: args.response, isCanceled: false, isFailed: false }
  const reports = yield* notifyParents([ended], end, args.at)
  // Unparked messages are due now. The dispatcher finds their run ended and deletes them.
  const held = ended.paused_at === null ? [] : yield* unparkGroups({ groups: [ended.seq], at: args.at })
  return { kind: 'finished', runSeq: ended.seq, offers: [...reports, ...held] }
}
