/**
 * Replicas of read regions at nodes of those regions. The home of a database makes a node of each read region keep a copy.
 * The copy follows the home by the engine's own replication through the link between nodes, and answers plain reads of the
 * clients of that node.
 *
 * ```
 *                  beat, four times a second: follow me; a lease for some reads
 *     home ───────────────────────────────────────────────────────────────────────▶ node of the read region
 *          ◀───────────────────────────────────────────────────────────────────────
 *                  how far the copy is, what it has read, and the time there (echoed by the next lease)
 * ```
 *
 * - Nothing of this is stored. A copy has nothing that the home does not have. So a home that starts, takes over or
 *   receives a database chooses a node again, and a node deletes a copy of which it hears nothing for `FORGET_MS`, or that
 *   is not wanted.
 * - The node answers reads only within a *lease* of `LEASE_MS`, counted from the moment in the answer that the home echoes:
 *   no clocks are compared, and a late message grants less time. The home gives a lease only while it may serve the
 *   database itself, so all leases have ended before another node takes over.
 * - `withdraw` resolves when no lease of a database is left that was given before. A change of credentials, users, allow
 *   list or suspension is answered after that. The next lease needs a node that has read the row again.
 * - A lease allows a number of reads, taken from the command rate and the requests of the month beforehand. The node reports
 *   totals, so a lost answer loses no count.
 * - The gateway ensures that a client of the node reads nothing older than what it has seen (`gateway/replicas/`): it asks
 *   the home for its place in the history and waits for the copy, as on one machine.
 *
 * - If a region has several nodes, one of them keeps the replica. Before a read without a sync token, it asks the others,
 *   its *siblings*, which answers of the home they have passed on to their clients. By the question they also learn where
 *   the replica is, and pass their clients on to it.
 *
 * `home-side.ts` is the home, `choice.ts` chooses its nodes, `node-side.ts` the node of the read region, `copy.ts` one copy
 * there; `siblings.ts` and `sibling-questions.ts` ask the other nodes of the region, `forwarded-answers.ts` is one of them;
 * `messages.ts` has what the nodes send.
 */
export { type Replicas, replicasOf } from './replicas.js'
