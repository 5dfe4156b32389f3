import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey } from '../engine/lanes.js'
import type { PinnedStream } from '../engine/pinned-stream.js'
import type { NearbyReads } from '../replicas/nearby-reads.js'

/**
 * Which engine connection the commands of one client travel on.
 *
 * ```
 *   none ──login──▶ shared ──MULTI, WATCH, BLPOP, slow reader──▶ own ──SUBSCRIBE, MONITOR, tracking──▶ pinned
 *    ▲                ▲                                         ▲ │                                     │
 *    │                └──── transaction closed, nothing owed ───┼─┘                                     │
 *    │                                                          └── everything left, tracking off ──────┤
 *    └────────────────────────────────────────── RESET ─────────────────────────────────────────────────┘
 * ```
 *
 * - none: nobody has logged in.
 * - shared: stateless commands, in one pipeline with those of other clients. They go to the primary, or in a read region
 *   (`reads` is there) to the replica, where only reads go.
 * - own: an engine connection lent to this client alone; replies are counted.
 * - pinned: the same, but the engine speaks on its own accord; replies are not counted.
 *
 * Between two lanes nothing is owed, so replies keep their order. Another user or version of the protocol changes who a
 * lane speaks for; an own lane with a state stays, and its engine is told.
 */
export type LaneState =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'shared'
      readonly key: LaneKey
      readonly link: EngineLink
      readonly reads: NearbyReads | undefined
    }
  | { readonly kind: 'own'; readonly key: LaneKey; readonly link: EngineLink; readonly transaction: Transaction }
  | {
      readonly kind: 'pinned'
      readonly key: LaneKey
      readonly link: EngineLink
      readonly transaction: Transaction
      readonly stream: PinnedStream
    }

/** A lane of the client's own, with counted replies. */
export type OwnLane = LaneState & { readonly kind: 'own' }
/** A lane on which the engine speaks on its own accord. */
export type PinnedLane = LaneState & { readonly kind: 'pinned' }

/** `kept`: no transaction, but the lane stays this client's own because it reads slowly. */
export type Transaction = 'none' | 'watching' | 'open' | 'kept'

/** Whether a transaction is lost with its connection. */
export function isOpen(transaction: Transaction): boolean {
  return transaction === 'open' || transaction === 'watching'
}
