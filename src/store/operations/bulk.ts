/**
 * Bulk actions. Each arrow is one transaction:
 *
 *   createAction ── running ◀─pause, resume─▶ paused      (bulk-control.ts)
 *       │            │   └───────abort───────┴──▶ aborted
 *       │            └─ a part of a chunk, again and again (bulk-part.ts, bulk-kinds.ts) ─▶ finished
 *       └────────────── (nothing to decide) ───────────────────────────────────────────────────┘
 *
 * An action with a large set begins as a draft instead of with `createAction` (bulk-draft.ts).
 */
export {
  type AbsentIds,
  type ActionArgs,
  type BulkActionRow,
  type CreateActionArgs,
  createAction,
  decidedItems,
  missedItems,
  type SetChunks,
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
export { addToDraft, createDrafted, draftAction, dropDraft, dropDrafts } from './bulk-draft.js'
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
