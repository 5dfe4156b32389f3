import { sql } from 'kysely'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { undoMessages } from '../../queue/transactions/messages-undo.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, first, type Transaction } from '../../store/statement.js'
import type { PausedWorkflow } from '../../workflow/transactions/runs-pause.js'
import type { NewRun } from '../../workflow/transactions/runs-rows.js'
import { reportChildren, type UndoClock, undoRuns } from '../../workflow/transactions/runs-undo.js'
import { type BatchArgs, batchOperation, type FinalOutcome, type KindResult } from './bulk-batch.js'
import { outcomeByte, unpackSeqs } from './bulk-pack.js'
import { batchSeqs } from './bulk-read.js'

/** The transactions of the kinds that undo a cancel: they select what was cancelled, and bring it back batch by batch. */

/** The settings of an undo, stored with its action. */
export interface UndoSettings {
  readonly clock: UndoClock
  /** The undone cancel, with the times of its start and end; absent when items are named by id. */
  readonly cancel?: { readonly seq: number; readonly from: number; readonly to: number }
}

interface CancelledArgs {
  readonly seqs: readonly number[]
  readonly accountId: string
}

const cancelledRuns = query<CancelledArgs, { seq: number; canceled_by: number | null }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'canceled_by'])
    .where(d.inNumbers('seq', p.seqs))
    .where('account_id', '=', p.accountId)
    .where('state', '=', sql.lit('RUN_CANCELED'))
    .orderBy('seq'),
)
const cancelledMessages = query<CancelledArgs, { seq: number; finished_at: number }>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', sql<number>`finished_at`.as('finished_at')])
    .where(d.inNumbers('seq', p.seqs))
    .where(d.alsoIs('account_id', p.accountId))
    .where('state', '=', sql.lit('canceled'))
    .orderBy('seq'),
)

/** The items to look for, and the cancel that they belong to. */
export interface CancelledAmongArgs extends CancelledArgs {
  readonly itemType: 'runs' | 'messages'
  readonly cancel?: UndoSettings['cancel']
}

function* among({ itemType, cancel, ...args }: CancelledAmongArgs): Transaction<number[]> {
  if (itemType === 'runs') {
    const rows = yield* all(cancelledRuns, args)
    return rows.filter((row) => !cancel || row.canceled_by === cancel.seq).map(({ seq }) => seq)
  }
  const rows = yield* all(cancelledMessages, args)
  const isOfCancel = (at: number): boolean => !cancel || (at >= cancel.from && at <= cancel.to)
  return rows.filter((row) => isOfCancel(row.finished_at)).map(({ seq }) => seq)
}

/** Which of these items are cancelled, ascending. */
export const cancelledAmong = read('bulk.cancelledAmong', among, { turn: 'background' })

const chunkFrom = query<
  { actionSeq: number; chunk: number },
  { chunk: number; seqs: Uint8Array | null; outcomes: Uint8Array | null }
>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select(['chunk', 'seqs', 'outcomes'])
    .where('action_seq', '=', p.actionSeq)
    .where('chunk', '>=', p.chunk)
    .orderBy('chunk')
    .limit(1),
)

const SUCCEEDED = outcomeByte('succeeded')

/** A page of the items that an action cancelled, and that are still cancelled by it. */
export interface CancelledPage {
  readonly seqs: readonly number[]
  /** The next chunk; `undefined` at the end. */
  readonly next: number | undefined
}

/** Reads one chunk of the set of a cancel. */
export const cancelledByAction = read(
  'bulk.cancelledByAction',
  function* (args: {
    accountId: string
    itemType: 'runs' | 'messages'
    cancel: NonNullable<UndoSettings['cancel']>
    chunk: number
  }): Transaction<CancelledPage> {
    const row = yield* first(chunkFrom, { actionSeq: args.cancel.seq, chunk: args.chunk })
    if (!row) return { seqs: [], next: undefined }
    const { outcomes } = row
    const done = unpackSeqs(row.seqs ?? new Uint8Array()).filter((_, index) => outcomes?.[index] === SUCCEEDED)
    const seqs = done.length > 0 ? yield* among({ ...args, seqs: done }) : []
    return { seqs, next: row.chunk + 1 }
  },
  { turn: 'background' },
)

/** A cancelled run, as fences see it. */
export interface FencedRun extends NewRun {
  readonly seq: number
}

const runsOf = query<CancelledArgs, FencedRun>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id', 'url', 'host', 'path', 'contact', 'labels', 'flow_key', 'caller_ip'])
    .where(d.inNumbers('seq', p.seqs))
    .where('account_id', '=', p.accountId)
    .where('state', '=', sql.lit('RUN_CANCELED')),
)

/** Reads the cancelled runs of a batch, for the fences. */
export const cancelledBatch = read(
  'bulk.cancelledBatch',
  function* (batch: BatchArgs & { accountId: string }): Transaction<FencedRun[]> {
    return yield* all(runsOf, { seqs: yield* batchSeqs(batch), accountId: batch.accountId })
  },
)

/** A batch of cancelled items. */
export interface UndoBatch extends BatchArgs, UndoSettings {
  /** Runs that a fence blocks. */
  readonly fenced?: readonly number[]
  /** Paused workflows that runs belong to. */
  readonly paused?: readonly PausedWorkflow[]
}

/** Outcome of an item that ended otherwise, was brought back before, or was cancelled by another request. */
const otherwise = (): FinalOutcome => 'alreadyFinished'

/** Brings cancelled runs back. */
export const undoRunsBatch = batchOperation(
  'bulk.undoRunsBatch',
  function* (seqs, action, batch: UndoBatch): Transaction<KindResult> {
    const fenced = new Set(batch.fenced)
    const { undone, notKept, offers } = yield* undoRuns({
      seqs: seqs.filter((seq) => !fenced.has(seq)),
      accountId: action.account_id,
      cancelledBy: batch.cancel?.seq,
      clock: batch.clock,
      by: action.seq,
      paused: batch.paused,
      at: batch.at,
    })
    const lost = new Set(notKept)
    const outcomeOf = (seq: number): FinalOutcome =>
      fenced.has(seq) ? 'fenced' : lost.has(seq) ? 'notKept' : otherwise()
    return { succeeded: undone, offers, outcomeOf }
  },
)

const endedUndoRows = query<{ endedAfter: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select('seq')
    .where('kind', '=', sql.lit('undoCancelRuns'))
    .where('finished_at', '>', p.endedAfter)
    .where((eb) => eb.or([eb('skipped', '>', sql.lit(0)), eb('failed', '>', sql.lit(0))]))
    .orderBy('seq'),
)

/** The undos of run cancels that ended after a time and left some of their runs cancelled. */
export const endedUndos = read('bulk.endedUndos', function* (args: { endedAfter: number }): Transaction<number[]> {
  return (yield* all(endedUndoRows, args)).map(({ seq }) => seq)
})

/**
 * Reports invoked runs that stay cancelled to the runs in `seqs`, which invoked them and wait.
 * @returns what to offer to the queue.
 */
export const reportLeft = write(
  'bulk.reportLeft',
  function* (args: { seqs: readonly number[]; at: number }): Transaction<PendingRow[]> {
    return yield* reportChildren(args.seqs, args.at)
  },
  { turn: 'background' },
)

/** Brings cancelled messages back. */
export const undoMessagesBatch = batchOperation(
  'bulk.undoMessagesBatch',
  function* (seqs, action, batch: UndoBatch): Transaction<KindResult> {
    // Without a cancel, items are named by id. The clock may have been set back since they were cancelled.
    const { from, to } = batch.cancel ?? { from: 0, to: Number.MAX_SAFE_INTEGER }
    const args = { seqs, accountId: action.account_id, from, to, clock: batch.clock, at: batch.at }
    const { seqs: succeeded, offers } = yield* undoMessages(args)
    return { succeeded, offers, outcomeOf: otherwise }
  },
)
