import type { PendingRow } from '../../queue/transactions/messages.js'
import { type Operation, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { type Ask, askAll, askChange, atOnce, atOnceBefore, type Transaction } from '../../store/statement.js'
import { actionBySeq, askCount, type BulkActionRow, type Counters, finishIfDecided } from './bulk-action.js'
import { type ItemOutcome, outcomeByte, unpackSeqs } from './bulk-pack.js'

/**
 * Decides the items of an action batch by batch. One transaction writes the effects, outcomes, counters, the end of the
 * action and its audit entry, so a crash can neither lose a count nor count twice.
 *
 * On PostgreSQL, batches of different chunks run side by side. A batch locks its chunk, then its items, and the row of the
 * action at the end, for its counters. A control that stops an action locks all chunks with undecided items first, so it
 * waits for the batches in flight, and later ones see its effect.
 */

/** A batch: items `from` (inclusive) to `to` (exclusive) of one chunk. */
export interface BatchArgs {
  readonly actionSeq: number
  readonly chunk: number
  readonly from: number
  readonly to: number
  /** Unix milliseconds. */
  readonly at: number
  /** The node that processes the action. Default 0: a server alone. */
  readonly owner?: number
}

/** Final outcome of an item. */
export type FinalOutcome = Exclude<ItemOutcome, 'pending' | 'skipped'>

/** The result of a batch, with the row of the action after it. */
export interface DecidedBatch {
  /**
   * Items that this action was applied to, including items that an earlier attempt committed: the queue in memory must
   * forget them.
   */
  readonly succeeded: readonly number[]
  /** For `queue.offer`. */
  readonly offers: readonly PendingRow[]
  readonly action: BulkActionRow
}

/** What a kind did to the items of a batch. */
export interface KindResult {
  readonly succeeded: readonly number[]
  readonly offers: readonly PendingRow[]
  /** Outcome of an item that is not in `succeeded`. */
  readonly outcomeOf: (seq: number) => FinalOutcome
  /** Further statements of the kind, run in one round trip with the statements that store the outcomes. */
  readonly remaining?: readonly Ask<number>[]
}

/** Applies a kind of action to items. `known`: the answer to the question of the kind. */
export type ApplyKind<Args> = (
  seqs: readonly number[],
  action: BulkActionRow,
  batch: Args,
  known: readonly object[],
) => Transaction<KindResult>

interface ChunkRow {
  readonly items: number
  readonly seqs: Uint8Array | null
  readonly outcomes: Uint8Array | null
}

const chunkForUpdate = query<{ actionSeq: number; chunk: number }, ChunkRow>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('bulk_chunks')
      .select(['items', 'seqs', 'outcomes'])
      .where('action_seq', '=', p.actionSeq)
      .where('chunk', '=', p.chunk),
  ),
)

const setOutcomes = query<{ actionSeq: number; chunk: number; outcomes: Uint8Array; decided: number }>(({ db, p }) =>
  db
    .updateTable('bulk_chunks')
    .set((eb) => ({ outcomes: p.outcomes, pending: eb('pending', '-', p.decided) }))
    .where('action_seq', '=', p.actionSeq)
    .where('chunk', '=', p.chunk),
)

/** The undecided items of a batch. Flat lists of numbers, because there are many. */
interface OpenBatch {
  /** Outcomes of the whole chunk, one byte an item. */
  readonly outcomes: Uint8Array
  /** Undecided items; `positions` are their positions in the chunk. */
  readonly seqs: number[]
  readonly positions: number[]
  /** Items that an earlier attempt decided, whose caller never saw the commit. */
  readonly before: number[]
}

const PENDING = outcomeByte('pending')
const SUCCEEDED = outcomeByte('succeeded')

function openItems({ from, to }: BatchArgs, row: ChunkRow | undefined): OpenBatch {
  const outcomes = row?.outcomes ? new Uint8Array(row.outcomes) : new Uint8Array(row?.items ?? 0)
  const batch: OpenBatch = { outcomes, seqs: [], positions: [], before: [] }
  const items = row?.seqs ? unpackSeqs(row.seqs).slice(from, to) : []
  for (const [index, seq] of items.entries()) {
    const outcome = outcomes[from + index]
    if (outcome === SUCCEEDED) batch.before.push(seq)
    if (outcome !== PENDING) continue
    batch.seqs.push(seq)
    batch.positions.push(from + index)
  }
  return batch
}

const NONE: Counters = {
  succeeded: 0,
  alreadyFinished: 0,
  alreadyCancelled: 0,
  notFound: 0,
  failed: 0,
  skipped: 0,
}

/** Writes the outcomes of open items into the bytes of the chunk, and counts them. */
function countOutcomes({ outcomes, seqs, positions }: OpenBatch, { succeeded, outcomeOf }: KindResult): Counters {
  // Usually all items succeed.
  if (succeeded.length === seqs.length) {
    for (const position of positions) outcomes[position] = SUCCEEDED
    return { ...NONE, succeeded: seqs.length }
  }
  const counters = { ...NONE }
  const done = new Set(succeeded)
  for (const [index, seq] of seqs.entries()) {
    const outcome = done.has(seq) ? 'succeeded' : outcomeOf(seq)
    outcomes[positions[index] ?? 0] = outcomeByte(outcome)
    counters[outcome === 'fenced' || outcome === 'notKept' ? 'failed' : outcome]++
  }
  return counters
}

/** Stores the outcomes and counters of a batch; its last item ends the action. */
function* decide({ actionSeq, chunk, at }: BatchArgs, open: OpenBatch, done: KindResult): Transaction<BulkActionRow> {
  const counters = countOutcomes(open, done)
  const { outcomes, seqs } = open
  // The counters come last: the row of the action stays locked until the commit.
  const store = askChange(setOutcomes, { actionSeq, chunk, outcomes, decided: seqs.length })
  const [after] = yield* atOnceBefore([...(done.remaining ?? []), store], askCount(actionSeq, counters))
  if (!after) throw new Error(`bulk action ${actionSeq} was deleted meanwhile`)
  return yield* finishIfDecided(after, at)
}

/**
 * Applies a kind to the items of a batch in one transaction: effects, outcomes, counters and, with the last item, the
 * end of the action. Does nothing unless the action is running and this node is its owner.
 */
function* decideBatch<Args extends BatchArgs>(
  batch: Args,
  act: ApplyKind<Args>,
  question: readonly Ask<object[]>[],
): Transaction<DecidedBatch> {
  const { actionSeq, chunk } = batch
  // Read after the chunk was locked: the action may have been stopped meanwhile.
  const [[row], [action], known = []] = yield* atOnce([
    askAll(chunkForUpdate, { actionSeq, chunk }),
    askAll(actionBySeq, { seq: actionSeq }),
    ...question,
  ])
  if (!action) throw new Error(`bulk action ${actionSeq} does not exist`)
  const open = openItems(batch, row)
  const mayAct = action.state === 'running' && action.owner === (batch.owner ?? 0)
  if (!mayAct || open.seqs.length === 0) return { succeeded: open.before, offers: [], action }
  const done = yield* act(open.seqs, action, batch, known)
  const after = yield* decide(batch, open, done)
  return { succeeded: [...open.before, ...done.succeeded], offers: done.offers, action: after }
}

/**
 * Declares the transaction of a kind. It runs in the background: the writes of others go first.
 * @param question what `act` needs to know, asked in the first round trip.
 */
export function batchOperation<Args extends BatchArgs>(
  name: string,
  act: ApplyKind<Args>,
  ...question: readonly Ask<object[]>[]
): Operation<Args, DecidedBatch> {
  return write(name, (batch: Args) => decideBatch(batch, act, question), { turn: 'background' })
}

/** Marks the undecided items of a batch as failed. For items whose processing throws. */
export const failBatch = batchOperation(
  'bulk.failBatch',
  function* (_seqs, _action, _batch: BatchArgs): Transaction<KindResult> {
    return { succeeded: [], offers: [], outcomeOf: () => 'failed' }
  },
)
