import type { BULK_KINDS, BULK_STATES } from '../../contract/bulk/actions.js'
import type { Assigned } from './assigned.js'

/** What a bulk action does to each item of its set. */
export type BulkKindName = (typeof BULK_KINDS)[number]

/**
 * Where a bulk action stands.
 *
 *   running ◀──pause, resume──▶ paused
 *      │ └──────abort──────┐      │
 *      ▼                   ▼      ▼
 *   finished              aborted ◀┘
 *
 * `running` until every item of its fixed set has an outcome, then `finished` forever. An aborted action gives every
 * item that had none the outcome `skipped`. There is nothing else: an action is stored together with its whole set, or
 * is nobody's until it has all of it (`bulk/transactions/bulk-draft.ts`), so none is half selected, and a server that stops leaves
 * its actions `running` and takes them up again at its next start.
 */
export type BulkActionState = (typeof BULK_STATES)[number]

/** A bulk action: who asked for what, and how far it is. */
export interface BulkActionsTable {
  seq: Assigned<number>
  action_id: string
  account_id: string
  kind: BulkKindName
  state: BulkActionState
  /** JSON of the selector, as the caller gave it. */
  selector: string
  /** JSON of what the kind needs besides the items; NULL for nothing. */
  settings: string | null
  /** Why, in the caller's words. */
  reason: string | null
  /** The most items a second; NULL for no limit. */
  rate_per_second: number | null
  /** JSON of the target that new triggers must not match before `fence_until`; both NULL for no fence. */
  fence: string | null
  fence_until: number | null
  /** For the audit entry: who asked, with which credentials, from where. */
  actor: string
  source: string
  ip: string
  /** Items in the fixed set. The outcomes below count the decided ones; their sum is `matched` at the end. */
  matched: number
  /** Items that the action was done to. */
  succeeded: number
  /** Had ended, or left the dead letters, in another way. */
  already_finished: number
  /** Had been cancelled by somebody else before. */
  already_cancelled: number
  not_found: number
  failed: number
  /** Had no outcome when the action was aborted. */
  skipped: number
  created_at: number
  finished_at: number | null
  /** Since when it is paused; NULL in every other state. */
  paused_at: number | null
}

/** A part of the fixed set of an action; see `bulk/transactions/bulk-pack.ts` for the encodings. */
export interface BulkChunksTable {
  action_seq: number
  /** From 0, in the order of the items. */
  chunk: number
  /** How many items it has, and how many of them are still to be decided. */
  items: number
  pending: number
  /** `runs.seq` or `messages.seq` of each item, packed; NULL in a chunk of `absent` items. */
  seqs: Uint8Array | null
  /** JSON list of ids that name nothing. */
  absent: string | null
  /** One byte an item, 0 for "no outcome"; NULL while none has one. */
  outcomes: Uint8Array | null
}

/** Tables of the bulk room. */
export interface BulkTables {
  bulk_actions: BulkActionsTable
  bulk_chunks: BulkChunksTable
}
