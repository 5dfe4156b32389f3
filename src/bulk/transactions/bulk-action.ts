import { type Selectable, sql } from 'kysely'
import { recordAudit } from '../../accounts/transactions/accounts.js'
import type { AuditAction } from '../../contract/accounts/audit.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { BulkActionsTable, BulkKindName } from '../../store/schema/bulk.js'
import { type Ask, askAll, first, insertAll, only, type Transaction } from '../../store/statement.js'
import { type ItemOutcome, outcomeByte } from './bulk-pack.js'
import type { PackedSeqs } from './bulk-select.js'

/** A stored bulk action, without its fence, which may be long and is read only at a start. */
export type BulkActionRow = Omit<Selectable<BulkActionsTable>, 'fence'>

/** The columns of a `BulkActionRow`. */
export const ACTION_COLUMNS = [
  ...(['seq', 'action_id', 'account_id', 'kind', 'state', 'selector', 'settings', 'reason'] as const),
  ...(['rate_per_second', 'fence_until', 'actor', 'source', 'ip'] as const),
  ...(['matched', 'succeeded', 'already_finished', 'already_cancelled', 'not_found', 'failed', 'skipped'] as const),
  ...(['created_at', 'finished_at', 'paused_at', 'owner', 'unreadable'] as const),
] as const satisfies readonly (keyof BulkActionRow)[]

/** Ids that match nothing, one chunk of them. */
export interface AbsentIds {
  readonly items: number
  /**
   * A JSON list. There may be hundreds of thousands; as separate strings they would take long to copy to the store
   * thread.
   */
  readonly ids: string
}

/** Chunks of a fixed set: items to decide, and ids that match nothing. */
export interface SetChunks {
  readonly chunks: readonly PackedSeqs[]
  readonly absent: readonly AbsentIds[]
}

/** A new action without its set. */
export interface ActionArgs {
  readonly actionId: string
  readonly accountId: string
  readonly kind: BulkKindName
  /** JSON. */
  readonly selector: string
  /** JSON of the settings of the kind, such as the changes to resent messages. */
  readonly settings: string | null
  readonly reason: string | null
  readonly ratePerSecond: number | null
  /** `target`: JSON of what new triggers must not match; `until`: Unix milliseconds. */
  readonly fence: { readonly target: string; readonly until: number } | null
  readonly actor: string
  readonly source: string
  readonly ip: string
  /** Unix milliseconds. */
  readonly at: number
  /** Items that a condition could not be tested on. Absent: none. */
  readonly unreadable?: number | undefined
  /** The node that processes it. Default 0: a server alone. */
  readonly owner?: number
}

/** A new action with its whole set. */
export interface CreateActionArgs extends ActionArgs, SetChunks {}

type InsertedAction = Omit<
  Selectable<BulkActionsTable>,
  'seq' | 'succeeded' | 'already_finished' | 'already_cancelled' | 'failed' | 'skipped' | 'finished_at' | 'paused_at'
>

const insertAction = query<InsertedAction, { seq: number }>(({ db, p }) =>
  db
    .insertInto('bulk_actions')
    .values({
      action_id: p.action_id,
      account_id: p.account_id,
      kind: p.kind,
      state: p.state,
      selector: p.selector,
      settings: p.settings,
      reason: p.reason,
      rate_per_second: p.rate_per_second,
      fence: p.fence,
      fence_until: p.fence_until,
      actor: p.actor,
      source: p.source,
      ip: p.ip,
      matched: p.matched,
      succeeded: 0,
      already_finished: 0,
      already_cancelled: 0,
      not_found: p.not_found,
      failed: 0,
      skipped: 0,
      created_at: p.created_at,
      owner: p.owner,
      unreadable: p.unreadable,
    })
    .returning('seq'),
)

function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Inserts chunks of an action, first the chunks with items to decide. `from` is the number of the first chunk. */
export function* insertChunks(action_seq: number, set: SetChunks, from = 0): Transaction<void> {
  const openChunks = set.chunks.map(({ items, seqs }, index) => {
    return { action_seq, chunk: from + index, items, pending: items, seqs }
  })
  yield* insertAll('bulk_chunks', openChunks)
  const absentChunks = set.absent.map(({ items, ids: absent }, index) => ({
    action_seq,
    chunk: from + openChunks.length + index,
    items,
    pending: 0,
    absent,
    outcomes: new Uint8Array(items).fill(outcomeByte('notFound')),
  }))
  yield* insertAll('bulk_chunks', absentChunks)
}

/** Items of a set, and how many of them match nothing. */
interface Totals {
  readonly matched: number
  readonly notFound: number
}

/** Inserts an action without its set. @returns its number. */
export function* insertActionRow(
  args: ActionArgs,
  { matched, notFound }: Totals,
  state: 'running' | 'paused' = 'running',
): Transaction<number> {
  const { seq } = yield* only(insertAction, {
    state,
    action_id: args.actionId,
    account_id: args.accountId,
    kind: args.kind,
    selector: args.selector,
    settings: args.settings,
    reason: args.reason,
    rate_per_second: args.ratePerSecond,
    fence: args.fence?.target ?? null,
    fence_until: args.fence?.until ?? null,
    actor: args.actor,
    source: args.source,
    ip: args.ip,
    matched,
    not_found: notFound,
    created_at: args.at,
    owner: args.owner ?? 0,
    unreadable: args.unreadable ?? null,
  })
  return seq
}

/** Stores an action with its set. An action with nothing to decide is finished at once. */
export const createAction = write('bulk.create', function* (args: CreateActionArgs): Transaction<BulkActionRow> {
  const notFound = total(args.absent.map(({ items }) => items))
  const matched = notFound + total(args.chunks.map(({ items }) => items))
  const seq = yield* insertActionRow(args, { matched, notFound })
  yield* insertChunks(seq, args)
  return yield* finishIfDecided(yield* only(actionBySeq, { seq }), args.at)
})

/** An action by its number, without a lock. */
export const actionBySeq = query<{ seq: number }, BulkActionRow>(({ db, p }) =>
  db.selectFrom('bulk_actions').select(ACTION_COLUMNS).where('seq', '=', p.seq),
)

/** Items by outcome. Fenced items count as failed. */
export type Counters = Record<Exclude<ItemOutcome, 'pending' | 'fenced' | 'notKept'>, number>

const addCounters = query<Counters & { seq: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set((eb) => ({
      succeeded: eb('succeeded', '+', p.succeeded),
      already_finished: eb('already_finished', '+', p.alreadyFinished),
      already_cancelled: eb('already_cancelled', '+', p.alreadyCancelled),
      not_found: eb('not_found', '+', p.notFound),
      failed: eb('failed', '+', p.failed),
    }))
    .where('seq', '=', p.seq)
    .returning(ACTION_COLUMNS),
)

/** Asks to add outcomes to a running action, and for its row. */
export function askCount(seq: number, counters: Counters): Ask<BulkActionRow[]> {
  return askAll(addCounters, { ...counters, seq })
}

const setFinished = query<{ seq: number; at: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({ state: 'finished', finished_at: p.at })
    .where('seq', '=', p.seq)
    .where('state', '=', sql.lit('running'))
    .returning(ACTION_COLUMNS),
)

/** Number of items that have their outcome. */
export function decidedItems(row: BulkActionRow): number {
  return row.succeeded + row.already_finished + row.already_cancelled + row.not_found + row.failed + row.skipped
}

/** Number of items that exist but did not reach the state the action is for, regardless of the cause. */
export function missedItems(row: BulkActionRow): number {
  return row.already_finished + row.failed
}

/** Finishes an action when every item has its outcome. */
export function* finishIfDecided(row: BulkActionRow, at: number): Transaction<BulkActionRow> {
  if (decidedItems(row) < row.matched) return row
  const finished = yield* first(setFinished, { seq: row.seq, at })
  if (!finished) return row
  yield* recordAudit(endEntry(finished, at))
  return finished
}

const AUDIT_ACTIONS: Readonly<Record<BulkKindName, AuditAction>> = {
  cancelRuns: 'Cancel Workflow Runs',
  cancelMessages: 'Cancel Messages',
  resumeRuns: 'Resume Workflow Runs',
  restartRuns: 'Restart Workflow Runs',
  retryFailureCallbacks: 'Retry Failure Callbacks',
  deleteDeadRuns: 'Delete Dead Workflow Runs',
  deleteDeadLetters: 'Delete Dead Letters',
  retryDeadLetters: 'Retry Dead Letters',
  undoCancelRuns: 'Undo Cancel of Workflow Runs',
  undoCancelMessages: 'Undo Cancel of Messages',
  pauseRuns: 'Pause Workflow Runs',
  unpauseRuns: 'Resume Paused Workflow Runs',
}

/** The audit entry of an action that has ended. */
export function endEntry(row: BulkActionRow, at: number): Parameters<typeof recordAudit>[0] {
  const { matched, succeeded, skipped, reason } = row
  const done = row.kind.startsWith('cancel') ? { cancelled: succeeded } : { succeeded }
  const details = {
    selector: JSON.parse(row.selector),
    matched,
    ...done,
    failed: missedItems(row),
    ...(skipped > 0 && { skipped }),
    ...(reason !== null && { reason }),
  }
  return {
    log_id: row.action_id.replace(/^.*_/, 'log_'),
    account_id: row.account_id,
    actor: row.actor,
    source: row.source,
    action: AUDIT_ACTIONS[row.kind],
    entity: row.action_id,
    details: JSON.stringify(details),
    ip: row.ip,
    at,
  }
}
