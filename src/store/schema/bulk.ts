import type { Assigned } from '../dialect.js'

/**
 * Where a bulk action stands: `running` until every item of its fixed set has an outcome, then `finished` for ever.
 * Nothing else exists: an action is stored together with its whole set, so there is none that is half selected, and a
 * server that stops leaves its actions `running` and takes them up again at its next start.
 */
export type BulkActionState = 'running' | 'finished'

/** A bulk action: who asked for what, and how far it is. */
export interface BulkActionsTable {
  seq: Assigned<number>
  action_id: string
  account_id: string
  state: BulkActionState
  /** JSON of the selector, as the caller gave it. */
  selector: string
  /** For the audit entry: who asked, with which credentials, from where. */
  actor: string
  source: string
  ip: string
  /** Items in the fixed set. The outcomes below count the decided ones; their sum is `matched` when it is finished. */
  matched: number
  cancelled: number
  /** Had ended otherwise than by being cancelled. */
  already_finished: number
  /** Had been cancelled by somebody else before. */
  already_cancelled: number
  not_found: number
  failed: number
  created_at: number
  finished_at: number | null
}

/** A part of the fixed set of an action; see `operations/bulk-pack.ts` for the encodings. */
export interface BulkChunksTable {
  action_seq: number
  /** From 0, in the order of the items. */
  chunk: number
  /** How many items it has, and how many of them have no outcome yet. */
  items: number
  pending: number
  /** `runs.seq` of each item, packed; NULL in a chunk of `absent` items. */
  seqs: Uint8Array | null
  /** JSON list of ids that name no run. */
  absent: string | null
  /** One byte an item, 0 for "pending"; NULL while all of them are pending. */
  outcomes: Uint8Array | null
}

/** Tables of the bulk room. */
export interface BulkTables {
  bulk_actions: BulkActionsTable
  bulk_chunks: BulkChunksTable
}
