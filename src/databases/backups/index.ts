/**
 * Backups: snapshots of databases that are known to load, and the way back.
 *
 * ```
 *   create, schedule ─┐
 *   import: a file,   ├─▶ pending ──snapshot, check──▶ completed ──restore──▶ the data of a database
 *   another server  ──┘      │                            │
 *                            └──▶ failed                  └── download: an RDB file
 * ```
 *
 * - `making.ts`: the engine forks and writes its own snapshot while it serves; the file is then loaded by an engine
 *   that exists for this only, and the number of keys and a sample of values are compared with the moment of the fork.
 * - `restoring.ts`: a safety backup, then one commit, then the files change; see the state machine there.
 * - `importing.ts`: what comes from outside fills a backup first, which is then restored; `source.ts` and
 *   `copy.ts` read other servers, where the gate for addresses that users name allows it.
 * - `daily.ts`: the schedule and the end of what is past its time.
 * - `files.ts`: where the files are; `backups.ts`: what callers ask for.
 *
 * Promises: a backup is `completed` only after an engine has loaded it; a restore either happens wholly or not at all,
 * whenever the server or an engine is killed; no command sees a mixture of old and new data; clients stay connected,
 * and but for commands that are on their way at the moment when the engine stops, all wait rather than fail; no file is
 * left that no record knows.
 *
 * Backups belong to their database: they move with it to another owner, and go when it is deleted.
 */
export { type BackupDownload, Backups } from './backups.js'
