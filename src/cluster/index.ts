/**
 * Which nodes use one store, and which of them does what.
 *
 * ```
 *              ┌────────────── PostgreSQL: the only coordinator ──────────────┐
 *              │ nodes        one row for each life of a process, with a beat  │
 *              │ partitions   64 rows: owner, epoch, notes of the owner before │
 *              │ leases       'leader'                                         │
 *              │ announcements what a node must hear that does not answer      │
 *              └───────▲──────────────────────▲──────────────────────▲────────┘
 *                beat, look              beat, look              beat, look
 *                   node a ◀── peer link ──▶ node b ◀── peer link ──▶ node c
 * ```
 *
 * Model
 * - A *node* is a process with a name. Each start of it is a new *incarnation*: a number that only grows.
 * - A node *beats* once a second and *looks* at all rows twice a second. Who sees the same beat of another one for 5 s of its
 *   own time declares it *dead*: an `UPDATE` that checks that beat. No clock is compared with another one.
 * - A node stops by itself (`mayAct`) 4 s after it has sent its last successful beat.
 * - A *partition* is a number in the row of a message. One node *owns* it and sends its messages. A message that shares
 *   nothing gets a partition of the node that accepts it. Messages of a flow-control key have the partition of the key.
 * - A node that stops hands its partitions over in one transaction and tells their next owners by the peer link.
 * - The *leader* does what only one node does: schedules, retention, roll-ups.
 * - *Hints* say "look now" and may get lost. What somebody relies on goes by `notify`: all nodes answer it, or it is
 *   stored as an announcement that a node must have read before its next beat counts.
 *
 * Promises
 * - A partition has at most one owner that may act.
 * - After `notify` no node acts on what was true before. It does not wait for dead nodes: the connections of such a node
 *   to PostgreSQL end before it counts as dead, so nothing that it accepts when it wakes up is ever committed.
 * - A server that is alone (`alone`) owns everything and pays nothing.
 */
export { alone } from './alone.js'
export { Clustered } from './clustered.js'
export type { ClusteredDeps } from './clustered-deps.js'
export { partitionOfKey } from './key-partition.js'
export { DEAD_AFTER_MS, type Moment, Tenure } from './membership.js'
export { createPeerLink } from './peer/index.js'
export {
  type Cluster,
  type Gained,
  type Incarnation,
  type LetGo,
  PARTITIONS,
  type PartitionHolder,
  type Peer,
  type PeerAnswer,
  type PeerHandler,
  type StreamHandler,
} from './types.js'
