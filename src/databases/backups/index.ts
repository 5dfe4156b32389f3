/**
 * Backups: verified snapshots of databases, restores and imports.
 *
 * ```
 *   create, schedule ─┐
 *   import: a file,   ├─▶ pending ──snapshot, check──▶ completed ──restore──▶ the data of a database
 *   another server  ──┘      │                            │
 *                            └──▶ failed                  └── download: an RDB file
 * ```
 *
 * - `backups.ts`: the operations that callers ask for. `jobs.ts`: how many are active, and what happens to them at the stop.
 * - `creation.ts`: the engine forks and writes its own snapshot while it serves. A temporary engine then loads the file,
 *   and the number of keys and a sample of values are compared with those at the fork.
 * - `restores.ts`: a safety backup, then one commit, then the files change; the state machine is there.
 * - `imports.ts`: foreign data fills a backup first, which is then restored. `copy.ts` and `peer.ts` read other servers,
 *   at addresses that `deliveryTargets` allows.
 * - `interrupted.ts`: a start completes a pending backup whose file exists.
 * - `loss-acceptance.ts`: starts a database without the data that it has lost.
 * - `recovered-data.ts`: a backup as the data of a database whose node is gone.
 * - `daily.ts`: the schedule of daily backups, and retention.
 * - `files.ts`: where the files are.
 *
 * Guarantees:
 * - A backup is `completed` only after an engine has loaded it.
 * - A restore happens completely or not at all, whenever the server or an engine is killed.
 * - No command sees a mixture of old and new data.
 * - Clients stay connected during a restore. Commands wait; only those in flight when the engine stops fail.
 * - No file is left that has no row.
 *
 * Backups belong to their database: they move with it to another owner, and are deleted with it.
 */
export { type BackupDownload, Backups } from './backups.js'
