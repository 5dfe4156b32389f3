/**
 * Backups of the whole service: store, databases, credentials and keys in one folder, and their restore elsewhere.
 *
 * ```
 *   asked ─▶ running: <name>.partial/ ── store ─▶ databases ─▶ keys ─▶ manifest ─▶ renamed to <name>/: completed
 *                 └─ any failure: the folder is deleted: failed
 * ```
 *
 * Consistency: the store is copied first, at one moment, with every commit before it. The databases of that copy follow one
 * by one, each with a snapshot of one moment of its own. So a database may have writes that are newer than the store, but
 * never lacks a write that the store knows to be done. A message that was delivered in between is delivered again after the
 * restore, as after a crash (at-least-once). A database in the backup always has its row. A row always has its data, or the
 * manifest says that its snapshot failed and why.
 *
 * - `manifest.ts`: the list of what a backup contains, and the folder of backups.
 * - `place.ts`: where backups are kept: a folder, or object storage, whose objects `stored.ts` writes and reads.
 * - `make.ts`: makes backups in the running server, one at a time. `routes.ts`: its operations.
 * - `schedule.ts`: makes one whenever the newest in a folder is old enough.
 * - `verify.ts`: digests, the integrity of the store, and every database loaded by an engine.
 * - `restore.ts`: makes a new data directory of a backup.
 *
 * Guarantees:
 * - A folder gets the name of a backup only after its manifest was written last, which lists every file with size and
 *   digest.
 * - In object storage, the manifest is written after every other object was read back.
 * - Nothing is ever overwritten. Old backups are removed only after all files of the new one were read back.
 * - Commands wait only for the fork of their engine. Writes of the store do not wait.
 * - A restore changes nothing before every file has the size and digest of the manifest, and the data directory appears
 *   at once, complete.
 *
 * Files in a folder are in clear and contain secrets: folders have mode 0700 and files 0600. Objects are sealed with the
 * keys of the data directory. A backup does not contain the configuration, the backups of single databases, the quarantine
 * and crash reports.
 */
export { ServiceBackups, type ServiceBackupsDeps } from './make.js'
export { type ListedBackup, listBackups, type Manifest, readManifest } from './manifest.js'
export { type BackupPlace, folderPlace, StoredPlace } from './place.js'
export { restoreService } from './restore.js'
export { serviceBackupRoutes } from './routes.js'
export { BackupSchedule } from './schedule.js'
export { StoredBackups } from './stored.js'
export { type SnapshotLoader, verifyBackup } from './verify.js'
