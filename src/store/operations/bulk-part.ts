import { change, first, type Operation, type Transaction, write } from '../operation.js'
import { query } from '../query.js'
import { type BulkActionRow, type Counters, count, lockAction } from './bulk-action.js'
import { type ItemOutcome, outcomeByte, outcomeOf, unpackSeqs } from './bulk-pack.js'
import type { PendingRow } from './messages.js'

/**
 * Deciding the items of an action, part by part. Outcomes, counters, the end and the audit entry are written in the
 * same transaction as the effects that they tell of, so that a crash can neither lose a count nor count twice.
 */

/** A part of a chunk: the items from `from` to before `to`. */
export interface ChunkPart {
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
export interface DecidedPart {
  /** Every item of the part that this action was done to, in an earlier try too: memory has to learn of them. */
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
export type Act<Part> = (seqs: readonly number[], action: BulkActionRow, part: Part) => Transaction<Done>

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

/** An item of a part that has no outcome yet. */
interface OpenItem {
  readonly position: number
  readonly seq: number
}

interface OpenPart {
  readonly outcomes: Uint8Array
  readonly open: readonly OpenItem[]
  /** Items that an earlier try was done to, of whose commit its caller did not learn. */
  readonly before: readonly number[]
}

function* openItems(part: ChunkPart): Transaction<OpenPart> {
  const row = yield* first(chunkForUpdate, part)
  if (!row?.seqs) return { outcomes: new Uint8Array(), open: [], before: [] }
  const outcomes = Uint8Array.from(row.outcomes ?? new Uint8Array(row.items))
  const items = unpackSeqs(row.seqs)
    .slice(part.from, part.to)
    .map((seq, index) => ({ position: part.from + index, seq }))
  const having = (outcome: ItemOutcome) => items.filter(({ position }) => outcomeOf(outcomes[position]) === outcome)
  return { outcomes, open: having('pending'), before: having('succeeded').map((item) => item.seq) }
}

/** Writes the outcomes of open items into their chunk and the counters, and ends the action with its last one. */
function* decide(
  part: ChunkPart,
  { outcomes, open }: OpenPart,
  of: (seq: number) => Decided,
): Transaction<BulkActionRow> {
  const counters: Counters = {
    succeeded: 0,
    alreadyFinished: 0,
    alreadyCancelled: 0,
    notFound: 0,
    failed: 0,
    skipped: 0,
  }
  for (const { position, seq } of open) {
    const outcome = of(seq)
    outcomes[position] = outcomeByte(outcome)
    counters[outcome === 'fenced' ? 'failed' : outcome]++
  }
  yield* change(setOutcomes, { actionSeq: part.actionSeq, chunk: part.chunk, outcomes, decided: open.length })
  return yield* count(part.actionSeq, counters, part.at)
}

/**
 * Does to the items of a part what a kind does, all in one transaction: the effects, the outcome of every item, the
 * counters and, with the last item, the end of the action. Nothing happens to one that is not running.
 */
function* workOn<Part extends ChunkPart>(part: Part, act: Act<Part>): Transaction<DecidedPart> {
  const action = yield* lockAction(part.actionSeq)
  if (action.state !== 'running') return { succeeded: [], offers: [], action }
  const chunk = yield* openItems(part)
  if (chunk.open.length === 0) return { succeeded: chunk.before, offers: [], action }
  const done = yield* act(
    chunk.open.map((item) => item.seq),
    action,
    part,
  )
  const succeeded = new Set(done.succeeded)
  const after = yield* decide(part, chunk, (seq) => (succeeded.has(seq) ? 'succeeded' : done.otherwise(seq)))
  return { succeeded: [...chunk.before, ...done.succeeded], offers: done.offers, action: after }
}

/** Declares what an action does to the items of a part; everybody else's writes go before it. */
export function decides<Part extends ChunkPart>(name: string, act: Act<Part>): Operation<Part, DecidedPart> {
  return write(name, (part: Part) => workOn(part, act), { turn: 'background' })
}

/** Gives up on the items of a part that have no outcome yet; for items whose handling itself fails. */
export const failPart = decides('bulk.failPart', function* (_seqs, _action, _part: ChunkPart): Transaction<Done> {
  return { succeeded: [], offers: [], otherwise: () => 'failed' }
})
