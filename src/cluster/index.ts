/**
 * Which nodes use one store, and which of them does what.
 *
 * ```
 *              ┌────────────── PostgreSQL: the only coordinator ──────────────┐
 *              │ nodes        one row for each incarnation, with a beat        │
 *              │ partitions   64 rows: owner, epoch, notes of previous owner   │
 *              │ leases       'leader'                                         │
 *              │ announcements for nodes that have not answered a notification │
 *              └───────▲──────────────────────▲──────────────────────▲────────┘
 *                beat, look              beat, look              beat, look
 *                   node a ◀── peer link ──▶ node b ◀── peer link ──▶ node c
 * ```
 *
 * Model
 * - A *node* is a process with a name. Each start of it is a new *incarnation*: a number that only grows.
 * - A node *beats* once a second and *looks* at all rows twice a second. A node that
 *   sees the same beat of another node for 5 s
 *   of its own time declares it *dead*, with an `UPDATE` that checks that beat. No clocks are compared.
 * - A node stops by itself (`mayAct`) 4 s after it has sent its last successful beat.
 * - A *partition* is a number in the row of a message. One node *owns* it and sends its
 *   messages. Messages of a flow-control key
 *   have the partition of the key, and those of a group share one. Any other message gets a partition of the accepting node.
 * - A node that stops hands its partitions over in one transaction and notifies the next owners over the peer link.
 * - The *leader* does what only one node does: schedules, retention, roll-ups.
 * - *Hints* say "look now" and may get lost. `notify` is reliable: all nodes answer, or the notification is stored as an
 *   announcement, and `notify` waits until the silent nodes have handled it or are declared dead.
 *
 * Promises
 * - A partition has at most one owner that may act.
 * - After `notify`, no node acts on outdated state. It does not wait for dead nodes:
 *   their connections to PostgreSQL end before
 *   they count as dead, so a node that wakes up again cannot commit anything.
 * - A server that is alone (`alone`) owns everything, at no cost.
 */

export { Clustered } from './clustered.js'
export type { ClusteredDeps } from './clustered-deps.js'
export { partitionOfKey } from './key-partition.js'
export { DEAD_AFTER_MS, type Moment, Tenure } from './membership.js'
export { createPeerLink } from './peer/index.js'
export { singleNode } from './single-node.js'
export {
  type Cluster,
  type Gained,
  type Incarnation,
  PARTITIONS,
  type PartitionHolder,
  type Peer,
  type PeerAnswer,
  type PeerHandler,
  type ReleasedPartitions,
  type StreamHandler,
} from './types.js'
