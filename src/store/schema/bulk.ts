import type { BULK_KINDS, BULK_STATES } from '../../contract/bulk/actions.js'
import type { SelectingKind } from '../../contract/bulk/selectors.js'
import type { Assigned } from './assigned.js'

/** What a bulk action does with each item of its set. */
export type BulkKindName = (typeof BULK_KINDS)[number]

/**
 * State of a bulk action.
 *
 *   running ◀──pause, resume──▶ paused
 *      │ └──────abort──────┐      │
 *      ▼                   ▼      ▼
 *   finished              aborted ◀┘
 *
 * An action is `running` until every item of its fixed set has an outcome, then it is `finished` for good. Aborting gives
 * the outcome `skipped` to every item without one. No action is half selected: it is stored together with its whole set,
 * or stays an invisible draft until the set is complete (`bulk/transactions/bulk-draft.ts`). When the server stops, actions
 * stay `running` and continue at the next start.
 */
export type BulkActionState = (typeof BULK_STATES)[number]

/** A bulk action: its request, state and progress. */
export interface BulkActionsTable {
  seq: Assigned<number>
  action_id: string
  account_id: string
  kind: BulkKindName
  state: BulkActionState
  /** JSON of the selector as requested. */
  selector: string
  /** JSON of the kind's parameters; NULL for none. */
  settings: string | null
  /** The caller's reason. */
  reason: string | null
  /** Rate limit, items per second; NULL for none. */
  rate_per_second: number | null
  /** JSON of the target that new triggers must not match before `fence_until`; both NULL for no fence. */
  fence: string | null
  fence_until: number | null
  /** For the audit log: caller, credentials, address. */
  actor: string
  source: string
  ip: string
  /** Items in the fixed set. The columns below count outcomes; at the end their sum is `matched`. */
  matched: number
  /** Items that are not in the set because a condition could not be tested on them; NULL for none. */
  unreadable: number | null
  /** Items that the action changed. */
  succeeded: number
  /** Items that had already ended or left the dead letters. */
  already_finished: number
  /** Items that another request had already cancelled. */
  already_cancelled: number
  not_found: number
  failed: number
  /** Items without an outcome when the action was aborted. */
  skipped: number
  created_at: number
  finished_at: number | null
  /** When it was paused; NULL in every other state. */
  paused_at: number | null
  /** The node that processes it, `nodes.incarnation`; 0 for a server alone. */
  owner: number
}

/** A chunk of the fixed set of an action; encodings: `bulk/transactions/bulk-pack.ts`. */
export interface BulkChunksTable {
  action_seq: number
  /** Position of the chunk, from 0. */
  chunk: number
  /** Number of items, and number of items without an outcome. */
  items: number
  pending: number
  /** `runs.seq` or `messages.seq` of each item, packed; NULL in a chunk of `absent` items. */
  seqs: Uint8Array | null
  /** JSON list of ids that do not exist. */
  absent: string | null
  /** One byte per item, 0 for "no outcome"; NULL while no item has one. */
  outcomes: Uint8Array | null
}

/** A selector that an account has saved. */
export interface BulkSelectorsTable {
  account_id: string
  name: string
  /** A kind of action that accepts the selector. */
  kind: SelectingKind
  /** JSON */
  selector: string
  /** E-mail of the account that saved it. */
  saved_by: string
  saved_at: number
}

/** A workflow whose runs begin paused. */
export interface PausedWorkflowsTable {
  account_id: string
  /** The whole URL of its runs. */
  url: string
  /** Unix milliseconds. */
  paused_at: number
  /** JSON of `RunPause` (`workflow/transactions/runs-pause.ts`). */
  pause: string
}

/** Tables of the module bulk. */
export interface BulkTables {
  bulk_actions: BulkActionsTable
  bulk_chunks: BulkChunksTable
  bulk_selectors: BulkSelectorsTable
  paused_workflows: PausedWorkflowsTable
}
