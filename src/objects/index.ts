/**
 * Object storage: sealed files at a place with the S3 protocol.
 *
 * - `ObjectStorage` writes, reads, lists and deletes objects. Memory is bounded: one part of an upload, one chunk of a
 *   download. Every request is signed with the digest of its body.
 * - `seal` and `unseal` encrypt what leaves the machine, in authenticated chunks: `sealed.ts` has the format.
 * - `BackupKeys` are the keys, in the data directory.
 *
 * It knows nothing of databases. It never retries: its caller knows how long to wait.
 */
export { BACKUP_KEYS_FILE, type BackupKey, BackupKeys } from './keys.js'
export type { StorageOptions } from './requests.js'
export { seal, sealedBytes, unseal } from './sealed.js'
export { type ObjectEntry, ObjectStorage } from './storage.js'
export { type StorageConfig, type StorageVariables, storageAt } from './storage-at.js'
