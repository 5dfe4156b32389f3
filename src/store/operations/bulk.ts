import { type Selectable, sql } from 'kysely'
import { all, change, first, insertAll, only, type Transaction, write } from '../operation.js'
import { query } from '../query.js'
import type { BulkActionsTable } from '../schema/bulk.js'
import type { RunState } from '../schema/runs.js'
import { recordAudit } from './accounts.js'
import { type ItemOutcome, outcomeByte, outcomeOf, unpackSeqs } from './bulk-pack.js'
import type { PackedSeqs } from './bulk-select.js'
import { type CanceledRuns, cancelRuns } from './runs.js'

/**
 * The writes of a bulk action. Each of its arrows is one transaction:
 *
 *   createAction ── running ── decide a part of a chunk, again and again ── finished
 *         └──────────────────── (nothing to decide) ──────────────────────────┘
 *
 * Outcomes, counters, the end and the audit entry are written in the same transaction as the cancellations that they
 * tell of, so that a crash can neither lose a count nor count twice.
 */

/** A bulk action as it is stored. */
export type BulkActionRow = Selectable<BulkActionsTable>

/** A new action with the whole of its fixed set. */
export interface CreateActionArgs {
  readonly actionId: string
  readonly accountId: string
  /** JSON. */
  readonly selector: string
  readonly actor: string
  readonly source: string
  readonly ip: string
  readonly chunks: readonly PackedSeqs[]
  /** Ids that name no run, in parts as large as chunks are. */
  readonly absent: readonly (readonly string[])[]
  /** Unix milliseconds. */
  readonly at: number
}

type Counters = Record<Exclude<ItemOutcome, 'pending'>, number>

const insertAction = query<
  {
    action_id: string
    account_id: string
    selector: string
    actor: string
    source: string
    ip: string
    matched: number
    not_found: number
    created_at: number
  },
  { seq: number }
>(({ db, p }) =>
  db
    .insertInto('bulk_actions')
    .values({
      action_id: p.action_id,
      account_id: p.account_id,
      state: 'running',
      selector: p.selector,
      actor: p.actor,
      source: p.source,
      ip: p.ip,
      matched: p.matched,
      cancelled: 0,
      already_finished: 0,
      already_cancelled: 0,
      not_found: p.not_found,
      failed: 0,
      created_at: p.created_at,
    })
    .returning('seq'),
)

function total(parts: readonly number[]): number {
  return parts.reduce((sum, part) => sum + part, 0)
}

function* insertChunks(action_seq: number, args: CreateActionArgs): Transaction<void> {
  const toDo = args.chunks.map(({ items, seqs }, chunk) => ({ action_seq, chunk, items, pending: items, seqs }))
  yield* insertAll('bulk_chunks', toDo)
  const decided = args.absent.map((ids, index) => ({
    action_seq,
    chunk: toDo.length + index,
    items: ids.length,
    pending: 0,
    absent: JSON.stringify(ids),
    outcomes: new Uint8Array(ids.length).fill(outcomeByte('notFound')),
  }))
  yield* insertAll('bulk_chunks', decided)
}

/** Stores an action with its set; one that has nothing to decide is finished at once. */
export const createAction = write('bulk.create', function* (args: CreateActionArgs): Transaction<BulkActionRow> {
  const absent = total(args.absent.map((ids) => ids.length))
  const { seq } = yield* only(insertAction, {
    action_id: args.actionId,
    account_id: args.accountId,
    selector: args.selector,
    actor: args.actor,
    source: args.source,
    ip: args.ip,
    matched: absent + total(args.chunks.map((chunk) => chunk.items)),
    not_found: absent,
    created_at: args.at,
  })
  yield* insertChunks(seq, args)
  return yield* finishIfDecided(yield* only(actionBySeq, { seq }), args.at)
})

const actionBySeq = query<{ seq: number }, BulkActionRow>(({ db, p }) =>
  db.selectFrom('bulk_actions').selectAll().where('seq', '=', p.seq),
)

/** Adds to the counters. The row stays locked until the commit, so two parts never both see the end. */
const addCounters = query<Counters & { seq: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set((eb) => ({
      cancelled: eb('cancelled', '+', p.cancelled),
      already_finished: eb('already_finished', '+', p.alreadyFinished),
      already_cancelled: eb('already_cancelled', '+', p.alreadyCancelled),
      not_found: eb('not_found', '+', p.notFound),
      failed: eb('failed', '+', p.failed),
    }))
    .where('seq', '=', p.seq)
    .returningAll(),
)

const setFinished = query<{ seq: number; at: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({ state: 'finished', finished_at: p.at })
    .where('seq', '=', p.seq)
    .where('state', '=', sql.lit('running'))
    .returningAll(),
)

/** How many items of an action have their outcome. */
export function decidedItems(row: BulkActionRow): number {
  return row.cancelled + row.already_finished + row.already_cancelled + row.not_found + row.failed
}

/** How many items exist and are not cancelled at the end, whoever cancelled them. */
export function uncancelledItems(row: BulkActionRow): number {
  return row.already_finished + row.failed
}

function* finishIfDecided(row: BulkActionRow, at: number): Transaction<BulkActionRow> {
  if (decidedItems(row) < row.matched) return row
  const finished = yield* first(setFinished, { seq: row.seq, at })
  if (!finished) return row
  yield* recordAudit(auditEntry(finished, at))
  return finished
}

function auditEntry(row: BulkActionRow, at: number): Parameters<typeof recordAudit>[0] {
  const { matched, cancelled } = row
  const details = { selector: JSON.parse(row.selector), matched, cancelled, failed: uncancelledItems(row) }
  return {
    log_id: row.action_id.replace(/^.*_/, 'log_'),
    account_id: row.account_id,
    actor: row.actor,
    source: row.source,
    action: 'Cancel Workflow Runs',
    entity: row.action_id,
    details: JSON.stringify(details),
    ip: row.ip,
    at,
  }
}

/** A part of a chunk: the items from `from` to before `to`. */
export interface ChunkPart {
  readonly actionSeq: number
  readonly chunk: number
  readonly from: number
  readonly to: number
  /** Unix milliseconds. */
  readonly at: number
}

/** What was decided, and where the action stands now. */
export interface DecidedPart {
  /** Every run of the part that this action has cancelled, for `queue.drop({ groupKeys })`. */
  readonly cancelled: readonly number[]
  /** For `queue.offer`. */
  readonly offers: CanceledRuns['offers']
  readonly action: BulkActionRow
}

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

const statesOf = query<{ seqs: readonly number[] }, { seq: number; state: RunState }>(({ db, p, d }) =>
  db.selectFrom('runs').select(['seq', 'state']).where(d.inNumbers('seq', p.seqs)),
)

/** An item of a part that has no outcome yet. */
interface OpenItem {
  readonly position: number
  readonly seq: number
}

interface OpenChunk {
  readonly outcomes: Uint8Array
  readonly open: readonly OpenItem[]
  /** Runs of the part that were cancelled by an earlier try whose commit its caller did not learn of. */
  readonly cancelledBefore: readonly number[]
}

function* openItems(part: ChunkPart): Transaction<OpenChunk> {
  const row = yield* first(chunkForUpdate, part)
  if (!row?.seqs) return { outcomes: new Uint8Array(), open: [], cancelledBefore: [] }
  const outcomes = Uint8Array.from(row.outcomes ?? new Uint8Array(row.items))
  const items = unpackSeqs(row.seqs)
    .map((seq, position) => ({ position, seq }))
    .slice(part.from, part.to)
  const having = (outcome: ItemOutcome) => items.filter(({ position }) => outcomeOf(outcomes[position]) === outcome)
  return { outcomes, open: having('pending'), cancelledBefore: having('cancelled').map((item) => item.seq) }
}

/** Writes the outcomes of open items into their chunk and the counters, and ends the action with its last one. */
function* decide(
  part: ChunkPart,
  { outcomes, open }: OpenChunk,
  outcomeFor: (seq: number) => Exclude<ItemOutcome, 'pending'>,
): Transaction<BulkActionRow> {
  if (open.length === 0) return yield* only(actionBySeq, { seq: part.actionSeq })
  const counters: Counters = { cancelled: 0, alreadyFinished: 0, alreadyCancelled: 0, notFound: 0, failed: 0 }
  for (const { position, seq } of open) {
    const outcome = outcomeFor(seq)
    outcomes[position] = outcomeByte(outcome)
    counters[outcome]++
  }
  yield* change(setOutcomes, { actionSeq: part.actionSeq, chunk: part.chunk, outcomes, decided: open.length })
  const row = yield* only(addCounters, { ...counters, seq: part.actionSeq })
  return yield* finishIfDecided(row, part.at)
}

function outcomeOfState(state: RunState | undefined): Exclude<ItemOutcome, 'pending'> {
  switch (state) {
    case undefined:
      return 'notFound'
    case 'RUN_CANCELED':
      return 'alreadyCancelled'
    case 'RUN_SUCCESS':
    case 'RUN_FAILED':
      return 'alreadyFinished'
    case 'RUN_STARTED':
      return 'failed'
  }
}

/**
 * Cancels the runs of a part that have no outcome yet. A run that has ended in the meantime is told from one that this
 * very transaction cancelled, so of two actions that hold the same run only one counts it.
 */
export const cancelPart = write('bulk.cancelPart', function* (part: ChunkPart): Transaction<DecidedPart> {
  const chunk = yield* openItems(part)
  const seqs = chunk.open.map((item) => item.seq)
  const done = yield* cancelRuns.body({ seqs, at: part.at })
  const cancelled = new Set(done.canceled)
  const others = seqs.filter((seq) => !cancelled.has(seq))
  const states = others.length > 0 ? yield* all(statesOf, { seqs: others }) : []
  const stateOf = new Map(states.map((row) => [row.seq, row.state]))
  const action = yield* decide(part, chunk, (seq) =>
    cancelled.has(seq) ? 'cancelled' : outcomeOfState(stateOf.get(seq)),
  )
  return { cancelled: [...chunk.cancelledBefore, ...done.canceled], offers: done.offers, action }
})

/** Gives up on the items of a part that have no outcome yet; for runs whose cancellation itself fails. */
export const failPart = write('bulk.failPart', function* (part: ChunkPart): Transaction<BulkActionRow> {
  return yield* decide(part, yield* openItems(part), () => 'failed')
})
