/**
 * Standbys: a second node keeps a copy of a database that follows the home all the time, by the engine's own replication
 * through the link between nodes.
 *
 * ```
 *   put            first contact           linked, log complete
 *   ───▶ asked ────────────────▶ copying ───────────────────────▶ following ◀──────▶ behind
 *                                                                     no answer, or the link is cut
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
 * - A database that sleeps is not woken for its standby: nothing is written meanwhile.
 * - The copy is never served, and its node becomes the home by no automatic means.
 *
 * `complete-until.ts` counts; `home-side.ts` is the home, `copy-side.ts` the node of the standby; both look at the rows in `standbys.ts`.
 */
export { dropStandby, listStandbys, putStandby } from './asking.js'
export { type Standbys, standbysOf } from './standbys.js'
