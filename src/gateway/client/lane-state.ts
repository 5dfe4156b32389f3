import type { DedicatedStream } from '../engine/dedicated-stream.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey } from '../engine/lanes.js'
import type { ReplicaReads } from '../replicas/replica-reads.js'

/**
 * The connection to an engine that carries the commands of one client.
 *
 * ```
 *   none ──login──▶ shared ──MULTI, WATCH, BLPOP, slow reader──▶ dedicated ──SUBSCRIBE, MONITOR, tracking──▶ pinned
 *    ▲                ▲                                         ▲ │                                           │
 *    │                └── transaction ended, no reply pending ──┼─┘                                           │
 *    │                                                          └── all unsubscribed, tracking off ───────────┤
 *    └─────────────────────────────────────────── RESET ──────────────────────────────────────────────────────┘
 * ```
 *
 * - none: the client has not logged in.
 * - shared: stateless commands, in one pipeline with those of other clients. They go to the primary, or, where `reads` is
 *   set, to the replica of this node's region, which takes only reads.
 * - dedicated: a connection to the primary that is lent to this client alone. Replies are counted.
 * - pinned: a dedicated lane on which the engine may push messages. Replies are not counted.
 *
 * A client changes lanes only while no reply is pending, so replies keep their order. After AUTH or HELLO a client uses
 * the lane of its new user and protocol; a dedicated lane with state stays, and its engine gets HELLO with both.
 */
export type LaneState =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'shared'
      readonly key: LaneKey
      readonly link: EngineLink
      readonly reads: ReplicaReads | undefined
    }
  | { readonly kind: 'dedicated'; readonly key: LaneKey; readonly link: EngineLink; readonly transaction: Transaction }
  | {
      readonly kind: 'pinned'
      readonly key: LaneKey
      readonly link: EngineLink
      readonly transaction: Transaction
      readonly stream: DedicatedStream
    }

/** A lane of one client alone, pinned or not. */
export type DedicatedLane = LaneState & { readonly kind: 'dedicated' | 'pinned' }

/** `kept`: there is no transaction, but the client keeps the dedicated lane because it reads slowly. */
export type Transaction = 'none' | 'watching' | 'open' | 'kept'

/** Whether a transaction is lost with its connection. */
export function isOpen(transaction: Transaction): boolean {
  return transaction === 'open' || transaction === 'watching'
}

/** Whether the client relies on what the engine keeps for this connection. */
export function hasState({ kind, transaction }: DedicatedLane): boolean {
  return kind === 'pinned' || isOpen(transaction)
}

/** Whether the client no longer needs its lane. A lane kept for a slow reader is free once it was closed to free memory. */
export function isFree({ transaction, link }: DedicatedLane): boolean {
  return transaction === 'none' || (transaction === 'kept' && link.isClosed)
}
