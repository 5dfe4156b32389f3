/**
 * Standbys: other nodes keep copies of a database that follow the home all the time, by the engine's own replication through
 * the link between nodes. A database has up to three, each at a node of its own, with a row and a state of its own:
 *
 * ```
 *   put            first contact           linked, log complete
 *   ───▶ asked ────────────────▶ copying ───────────────────────▶ following ◀──────▶ behind
 *                                                        │            no answer, or the link is cut
 *                                                        │ the home is dead
 *                                                        ▼
 *                            sealed: its place is stored. The node of the furthest is the home; asked, at the old home
 *   drop, or the database is deleted: the row goes, and the node of the standby deletes its copy
 * ```
 *
 * - The home drives: about once a second it asks the node of each standby to follow, with the password of its engine, and
 *   gets the answer how far the copy is. Only the home writes the state, under the epoch of the database: a node that is
 *   not the home any more changes nothing.
 * - `complete_until` is a promise: every write that the home had answered by then is in the copy. The home remembers its
 *   offset at each moment it asks, and the newest moment whose offset the copy has passed is the one that counts.
 * - A broken link connects again by itself and continues where it was, as long as the engine of the home remembers that
 *   part of its history. After a restart of either engine the copy is recreated, and the row says `copying`.
 * - With the placement `auto` the home chooses the node, and another one when that node is away for long or drained
 *   (`choice.ts`). A row that names the home itself has no other node yet.
 * - A database that sleeps is not woken for its standby: nothing is written meanwhile.
 * - The copy is not served while the home lives.
 *
 * Two nodes never answer for a database at the same time, although they share nothing but the store and a link that may hang:
 *
 * - The home answers only while it takes part in the cluster, or for 4 s after it has sent questions that the nodes of all
 *   standbys that may take over answered with a promise (`guard.ts`). The gateway asks the guard for every answer of an
 *   engine, so a process that wakes up from a pause passes nothing on.
 * - The node of a standby promises for 5 s at a time, and no more once it has seen in the store that the home is dead. It
 *   waits until its last promise has ended and still follows meanwhile, then cuts the stream and compares its place in the
 *   history with what was reported to the home (`takeover.ts`).
 * - Each standby that follows then stores its place in the history, or that it cannot take over, with the incarnation of
 *   the dead home. Among the standbys whose nodes take part, only the furthest may become the home, after all of these have
 *   stored their places.
 * - One transaction changes the home, with the next epoch, while no node can register an incarnation. It sees a home that
 *   has just restarted; a home that restarts later reads the new home and sets its files aside.
 * - Only a standby that is `following` in the store can take over, so the home needs no promise of any other.
 *
 * In the mode `replicated` no answered write is lost with the home: answers wait in the gateway until every copy whose row
 * says `following` has the writes of the engine so far (`confirmations.ts`). They begin to wait for a copy before its row
 * says so for the first time, and wait until it says something else.
 *
 * `complete-until.ts` computes `complete_until`; `home-side.ts` is the home, `copy-side.ts` the node of a standby,
 * `copy.ts` one copy there; both sides look at the rows in `standbys.ts`. `transactions/standby-sets.ts` has what the
 * operator asks for, `transactions/promotions.ts` who is furthest.
 */
export { dropStandby, listStandbys, placeStandby, placeStandbys, putStandby } from './requests.js'
export { type Standbys, standbysOf } from './standbys.js'
