import { sql } from 'kysely'
import { recordAudit } from '../../accounts/transactions/accounts.js'
import type { AuditAction } from '../../contract/accounts/audit.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { BulkActionState } from '../../store/schema/bulk.js'
import { all, change, first, only, type Transaction } from '../../store/statement.js'
import { ACTION_COLUMNS, type BulkActionRow, decidedItems, endEntry } from './bulk-action.js'
import { NO_ACCOUNT } from './bulk-draft.js'

/** Who controls an action, and which one. */
export interface ControlArgs {
  readonly accountId: string
  readonly actionId: string
  /** For the audit entry; `logId` becomes its id. */
  readonly by: { readonly actor: string; readonly source: string; readonly ip: string; readonly logId: string }
  /** The reason the caller gives. */
  readonly reason: string | null
  /** Unix milliseconds. */
  readonly at: number
  /** The node that accepted the request; it processes the action when it resumes it. Default 0: a server alone. */
  readonly owner?: number
}

/** `refused`: the state of the action does not allow the change. */
export type Controlled =
  | { readonly kind: 'changed' | 'refused'; readonly action: BulkActionRow }
  | { readonly kind: 'missing' }

const actionForUpdate = query<{ accountId: string; actionId: string }, BulkActionRow>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('bulk_actions')
      .select(ACTION_COLUMNS)
      .where('account_id', '=', p.accountId)
      .where('action_id', '=', p.actionId),
  ),
)

/**
 * Waits for the batches in flight, and keeps others from starting until the commit: each batch locks its chunk first.
 * Locking the action would not be enough, because a batch locks the action only at its end.
 */
const lockOpenChunks = query<{ accountId: string; actionId: string }, { chunks: number }>(({ db, p, d }) => {
  const ofAction = db
    .selectFrom('bulk_actions')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('action_id', '=', p.actionId)
  const open = db.selectFrom('bulk_chunks').select('chunk').where('action_seq', '=', ofAction).where('pending', '>', 0)
  return db
    .selectFrom(d.forUpdate(open.orderBy('chunk')).as('open'))
    .select((eb) => eb.fn.countAll<number>().as('chunks'))
})

/** Like `control`, between two batches. */
function* controlBetweenBatches(...given: Parameters<typeof control>): Transaction<Controlled> {
  yield* only(lockOpenChunks, given[0])
  return yield* control(...given)
}

/** Locks the action, changes it if its state allows, and writes the audit entry. */
function* control(
  args: ControlArgs,
  name: AuditAction,
  from: readonly BulkActionState[],
  act: (action: BulkActionRow) => Transaction<BulkActionRow>,
  details: object = {},
): Transaction<Controlled> {
  const action = yield* first(actionForUpdate, args)
  if (!action) return { kind: 'missing' }
  if (!from.includes(action.state)) return { kind: 'refused', action }
  yield* recordAudit({
    log_id: args.by.logId,
    account_id: args.accountId,
    actor: args.by.actor,
    source: args.by.source,
    action: name,
    entity: args.actionId,
    details: JSON.stringify({ ...details, ...(args.reason !== null && { reason: args.reason }) }),
    ip: args.by.ip,
    at: args.at,
  })
  return { kind: 'changed', action: yield* act(action) }
}

const setPaused = query<{ seq: number; at: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({ state: 'paused', paused_at: p.at })
    .where('seq', '=', p.seq)
    .returning(ACTION_COLUMNS),
)
const setRunning = query<{ seq: number; owner: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({ state: 'running', paused_at: null, owner: p.owner })
    .where('seq', '=', p.seq)
    .returning(ACTION_COLUMNS),
)

/** Pauses a running action between two batches. A restart of the server does not resume it. */
export const pause = write('bulk.pause', (args: ControlArgs) =>
  controlBetweenBatches(args, 'Pause Bulk Action', ['running'], ({ seq }) => only(setPaused, { seq, at: args.at })),
)

/** Resumes a paused action. */
export const resume = write('bulk.resume', (args: ControlArgs) =>
  control(args, 'Resume Bulk Action', ['paused'], ({ seq }) => only(setRunning, { seq, owner: args.owner ?? 0 })),
)

const setRateOf = query<{ seq: number; rate: number | null }, BulkActionRow>(({ db, p }) =>
  db.updateTable('bulk_actions').set({ rate_per_second: p.rate }).where('seq', '=', p.seq).returning(ACTION_COLUMNS),
)

/** Changes the rate limit of an action. */
export const setRate = write('bulk.setRate', (args: ControlArgs & { ratePerSecond: number | null }) => {
  const { ratePerSecond: rate } = args
  const details = { ratePerSecond: rate }
  const act = ({ seq }: BulkActionRow) => only(setRateOf, { seq, rate })
  return control(args, 'Change Bulk Action', ['running', 'paused'], act, details)
})

const closeChunks = query<{ seq: number }>(({ db, p }) =>
  db.updateTable('bulk_chunks').set({ pending: 0 }).where('action_seq', '=', p.seq).where('pending', '>', 0),
)
const setAborted = query<{ seq: number; skipped: number; at: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({
      state: 'aborted',
      skipped: p.skipped,
      finished_at: p.at,
      paused_at: null,
      fence: null,
      fence_until: null,
    })
    .where('seq', '=', p.seq)
    .returning(ACTION_COLUMNS),
)

/** Aborts an action for good: undecided items are skipped, and its fence is lifted. */
export const abort = write('bulk.abort', (args: ControlArgs) =>
  controlBetweenBatches(
    args,
    'Abort Bulk Action',
    ['running', 'paused'],
    function* (action): Transaction<BulkActionRow> {
      const { seq, matched } = action
      yield* change(closeChunks, { seq })
      const aborted = yield* only(setAborted, { seq, skipped: matched - decidedItems(action), at: args.at })
      yield* recordAudit(endEntry(aborted, args.at))
      return aborted
    },
  ),
)

const removeFence = query<{ seq: number }, BulkActionRow>(({ db, p }) =>
  db
    .updateTable('bulk_actions')
    .set({ fence: null, fence_until: null })
    .where('seq', '=', p.seq)
    .returning(ACTION_COLUMNS),
)

/** Lifts the fence of an action early. Does nothing if it has none. */
export const liftFence = write('bulk.liftFence', (args: ControlArgs) => {
  const act = ({ seq }: BulkActionRow) => only(removeFence, { seq })
  return control(args, 'Lift Fence', ['running', 'paused', 'finished', 'aborted'], act)
})

/** A fence that has not expired. */
export interface FenceRow {
  readonly seq: number
  readonly action_id: string
  readonly account_id: string
  readonly fence: string | null
  readonly fence_until: number | null
  readonly reason: string | null
}

const fencesAfter = query<{ now: number }, FenceRow>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select(['seq', 'action_id', 'account_id', 'fence', 'fence_until', 'reason'])
    .where('fence_until', '>', p.now),
)

/** All fences that have not expired. */
export const fences = read('bulk.fences', function* (args: { now: number }): Transaction<FenceRow[]> {
  return yield* all(fencesAfter, args)
})

const unfenced = query<{ actionIds: readonly string[] }, Pick<BulkActionRow, 'action_id'>>(({ db, p, d }) =>
  db
    .selectFrom('bulk_actions')
    .select('action_id')
    .where(d.inTexts('action_id', p.actionIds))
    .where('account_id', '<>', sql.lit(NO_ACCOUNT))
    .where('fence_until', 'is', null),
)

/** Which of these actions are stored without a fence. Drafts are left out: their fence may be raised but not stored yet. */
export const withoutFence = read('bulk.withoutFence', function* (args: { actionIds: readonly string[] }): Transaction<
  string[]
> {
  return (yield* all(unfenced, args)).map((row) => row.action_id)
})
