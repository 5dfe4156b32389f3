import type { PendingRow } from '../../queue/transactions/messages.js'
import { change, first, type Operation, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { type BulkActionRow, type Counters, count, lockAction } from './bulk-action.js'
import { type ItemOutcome, outcomeByte, unpackSeqs } from './bulk-pack.js'

/**
 * Deciding the items of an action, batch by batch. Outcomes, counters, the end and the audit entry are written in the
 * same transaction as the effects that they tell of, so that a crash can neither lose a count nor count twice.
 */

/** A batch of a chunk: the items from `from` to before `to`. */
export interface BatchArgs {
  readonly actionSeq: number
  readonly chunk: number
  readonly from: number
  readonly to: number
  /** Unix milliseconds. */
  readonly at: number
}

/** What an item that is decided came to. */
export type Decided = Exclude<ItemOutcome, 'pending' | 'skipped'>

/** What was decided, and where the action stands now. */
export interface DecidedBatch {
  /** Every item of the batch that this action was done to, in an earlier try too: memory has to learn of them. */
  readonly succeeded: readonly number[]
  /** For `queue.offer`. */
  readonly offers: readonly PendingRow[]
  readonly action: BulkActionRow
}

/** What a kind did to items. */
export interface Done {
  readonly succeeded: readonly number[]
  readonly offers: readonly PendingRow[]
  /** What became of an item that is not among them. */
  readonly otherwise: (seq: number) => Decided
}

/** Does to items what a kind does. */
export type Act<Args> = (seqs: readonly number[], action: BulkActionRow, batch: Args) => Transaction<Done>

const chunkForUpdate = query<
  { actionSeq: number; chunk: number },
  { items: number; seqs: Uint8Array | null; outcomes: Uint8Array | null }
>(({ db, p, d }) =>
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

/** What a batch is about. Batches are many: their items lie in plain lists of numbers. */
interface OpenBatch {
  /** Of the whole chunk. */
  readonly outcomes: Uint8Array
  /** Items that have no outcome yet, and their positions in the chunk. */
  readonly seqs: number[]
  readonly positions: number[]
  /** Items that an earlier try was done to, of whose commit its caller did not learn. */
  readonly before: number[]
}

const PENDING = outcomeByte('pending')
const SUCCEEDED = outcomeByte('succeeded')

function* openItems({ from, to, ...chunk }: BatchArgs): Transaction<OpenBatch> {
  const row = yield* first(chunkForUpdate, chunk)
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

/** Notes the outcomes of open items in the chunk, and counts them. */
function note({ outcomes, seqs, positions }: OpenBatch, { succeeded, otherwise }: Done): Counters {
  // Most often it was done to all of them.
  if (succeeded.length === seqs.length) {
    for (const position of positions) outcomes[position] = SUCCEEDED
    return { ...NONE, succeeded: seqs.length }
  }
  const counters = { ...NONE }
  const done = new Set(succeeded)
  for (const [index, seq] of seqs.entries()) {
    const outcome = done.has(seq) ? 'succeeded' : otherwise(seq)
    outcomes[positions[index] ?? 0] = outcomeByte(outcome)
    counters[outcome === 'fenced' ? 'failed' : outcome]++
  }
  return counters
}

/** Writes the outcomes of open items into their chunk and the counters, and ends the action with its last one. */
function* decide({ actionSeq, chunk, at }: BatchArgs, open: OpenBatch, done: Done): Transaction<BulkActionRow> {
  const counters = note(open, done)
  yield* change(setOutcomes, { actionSeq, chunk, outcomes: open.outcomes, decided: open.seqs.length })
  return yield* count(actionSeq, counters, at)
}

/**
 * Does to the items of a batch what a kind does, all in one transaction: the effects, the outcome of every item, the
 * counters and, with the last item, the end of the action. Nothing happens to one that is not running.
 */
function* workOn<Args extends BatchArgs>(batch: Args, act: Act<Args>): Transaction<DecidedBatch> {
  const action = yield* lockAction(batch.actionSeq)
  if (action.state !== 'running') return { succeeded: [], offers: [], action }
  const open = yield* openItems(batch)
  if (open.seqs.length === 0) return { succeeded: open.before, offers: [], action }
  const done = yield* act(open.seqs, action, batch)
  const after = yield* decide(batch, open, done)
  return { succeeded: [...open.before, ...done.succeeded], offers: done.offers, action: after }
}

/** Declares what an action does to the items of a batch; everybody else's writes go before it. */
export function decides<Args extends BatchArgs>(name: string, act: Act<Args>): Operation<Args, DecidedBatch> {
  return write(name, (batch: Args) => workOn(batch, act), { turn: 'background' })
}

/** Gives up on the items of a batch that have no outcome yet; for items whose handling itself fails. */
export const failBatch = decides('bulk.failBatch', function* (_seqs, _action, _batch: BatchArgs): Transaction<Done> {
  return { succeeded: [], offers: [], otherwise: () => 'failed' }
})
