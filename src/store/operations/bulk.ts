/**
 * Bulk actions. Each arrow is one transaction:
 *
 *   createAction ── running ◀─pause, resume─▶ paused      (bulk-control.ts)
 *       │            │   └───────abort───────┴──▶ aborted
 *       │            └─ a part of a chunk, again and again (bulk-part.ts, bulk-kinds.ts) ─▶ finished
 *       └────────────── (nothing to decide) ───────────────────────────────────────────────────┘
 */
export {
  type AbsentIds,
  type BulkActionRow,
  type CreateActionArgs,
  createAction,
  decidedItems,
  missedItems,
} from './bulk-action.js'
export {
  abort,
  type ControlArgs,
  type Controlled,
  type FenceRow,
  fences,
  liftFence,
  pause,
  resume,
  setRate,
} from './bulk-control.js'
export {
  cancelMessagesPart,
  cancelRunsPart,
  deleteDeadLettersPart,
  deleteDeadRunsPart,
  type RetryPart,
  type RevivePart,
  retryCallbacksPart,
  retryDeadLettersPart,
  revivablePart,
  reviveRunsPart,
} from './bulk-kinds.js'
export { type ChunkPart, type DecidedPart, failPart } from './bulk-part.js'
export { sweepActions } from './bulk-retention.js'
export type { UpcomingCancel } from './bulk-upcoming.js'
