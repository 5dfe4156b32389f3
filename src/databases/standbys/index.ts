/**
 * Standbys: a second node keeps a copy of a database that follows the home all the time, by the engine's own replication
 * through the link between nodes.
 *
 * ```
 *   put            first contact           linked, log complete
 *   ───▶ asked ────────────────▶ copying ───────────────────────▶ following ◀──────▶ behind
 *                                                        │            no answer, or the link is cut
 *                                                        │ the home is dead
 *                                                        ▼
 *                                          the node of the standby is the home; asked, at the old home
 *   drop, or the database is deleted: the row goes, and the node of the standby deletes its copy
 * ```
 *
 * - The home drives: about once a second it asks the standby's node to follow, with the password of its engine, and hears how
 *   far the copy is. Only the home writes the state, under the epoch of the database: one that is not the home any more
 *   changes nothing.
 * - `complete_until` is a promise: every write that the home had answered by then is in the copy. The home remembers its
 *   offset at each moment it asks, and the newest moment whose offset the copy has passed is the one that counts.
 * - A broken link connects again by itself and goes on where it was, as long as the engine of the home remembers that part
 *   of its history. After a restart of either engine the copy is recreated, and the row says `copying`.
 * - With the placement `auto` the home chooses the node, and another one when that is away for long or drained
 *   (`choice.ts`). A row that names the home itself: there is no other node yet.
 * - A database that sleeps is not woken for its standby: nothing is written meanwhile.
 * - The copy is not served while the home lives.
 *
 * Two nodes never answer for a database at the same time, although they share nothing but the store and a link that may hang:
 *
 * - The home answers only while it takes part in the cluster, or for 4 s after it has sent a question that the standby's node
 *   answered with a promise (`guard.ts`). The gateway asks for every answer of an engine, so a process that wakes up from a
 *   pause passes nothing on.
 * - The node of the standby promises for 5 s, and nothing any more once it has seen in the store that the home's life is over. It waits
 *   until its last promise has ended and still follows meanwhile, then cuts the stream and compares its place in the history with
 *   what was reported to the home (`takeover.ts`).
 * - One transaction changes the home, with the next epoch, while no node can begin a life: a home that has just started
 *   again is seen by it, one that starts later reads the new home and sets its files aside.
 * - Only a home with `following` in the store can be taken over, so every other one needs no promise.
 *
 * In the mode `replicated` nothing that was answered is lost with the home: while the row says `following`, answers wait in the
 * gateway until the copy has what the engine has done (`confirmations.ts`). They wait before the row says so for the first
 * time, and until it says something else.
 *
 * `complete-until.ts` counts; `home-side.ts` is the home, `copy-side.ts` the node of the standby; both look at the rows in `standbys.ts`.
 */
export { dropStandby, listStandbys, placeStandby, placeStandbys, putStandby } from './asking.js'
export { type Standbys, standbysOf } from './standbys.js'
