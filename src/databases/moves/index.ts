/**
 * Moves databases from their home to another node, while they serve.
 *
 * ```
 *   ask         begin                                  swap                              settle
 *   ───▶ asked ───────▶ copying ───────────────────────────────────────▶ switched ──────────────▶ done
 *          │              │  the target's engine follows the home's,     the target is the home;
 *          │              │  through a stream between the nodes           the source sets its files aside
 *          ▼ abort        ▼ abort
 *        failed ◀────── aborted   the target deletes its copy
 *                settle
 * ```
 *
 * - The rows decide. A move changes the home of a database only in `swap`, one transaction that checks home, epoch and the
 *   state of the move. So after a crash of either node, at any point, there is exactly one home, and it has all
 *   acknowledged writes.
 * - Each node looks at its open moves at its start, when it is notified, and every few seconds. It aborts moves that an
 *   earlier incarnation left `copying`, and completes moves that are `switched` or `aborted`.
 * - No client reaches the engine between the comparison of the offsets and `swap`: the connections to it are released and
 *   commands wait. So all acknowledged writes are in the copy.
 *
 * `departure.ts` has the steps by which a database leaves its home. `source.ts` is that home, `target.ts` the next one.
 * `streams.ts` carries replication and files between them: the first message names move, database and epoch, and the home
 * refuses what does not match an active move.
 */

export { type Moves, type MovesSettings, movesOf } from './moves.js'
export { listMoves, requestMove } from './requests.js'
