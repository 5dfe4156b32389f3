import { join } from 'node:path'
import { HomeportError } from '../contract/errors/errors.js'
import { checkSqliteStore, newestSchema } from '../store/index.js'
import { checkFiles, type Manifest, readManifest, snapshotPath } from './manifest.js'

/** Loads a snapshot in an engine. @returns the number of its keys. @throws when it does not load. */
export type SnapshotLoader = (file: string) => Promise<number>

/** Result of a verification. */
export interface Verified {
  readonly manifest: Manifest
  /** Keys of all databases. */
  readonly keys: number
}

/** Reads the manifest of a backup that this version can use, and compares every file with it. */
export async function readUsable(folder: string): Promise<Manifest> {
  const manifest = await readManifest(folder)
  if (manifest.schema > newestSchema()) {
    const reason = `Homeport ${manifest.version} made it, which is newer than this version; use that one or a newer one`
    throw new HomeportError('service_backup_unusable', { folder, reason })
  }
  await checkFiles(folder, manifest)
  return manifest
}

/**
 * Verifies a whole backup: every file, every page of the store and its contents, and every database in an engine.
 * @throws HomeportError `service_backup_unusable` that names what is wrong.
 */
export async function verifyBackup(folder: string, load: SnapshotLoader): Promise<Verified> {
  const manifest = await readUsable(folder)
  const store = await checkSqliteStore(folder, 'deep')
  const [problem] = store.kind === 'read' ? store.problems : [`its store is ${store.kind}`]
  if (problem !== undefined) throw new HomeportError('service_backup_unusable', { folder, reason: problem })
  let keys = 0
  for (const { databaseId, name, state } of manifest.databases) {
    if (state === 'failed') continue
    keys += await load(join(folder, snapshotPath(databaseId))).catch((cause: unknown) => {
      const reason = `its database ${name} does not load: ${cause instanceof Error ? cause.message : String(cause)}`
      throw new HomeportError('service_backup_unusable', { folder, reason }, { cause })
    })
  }
  return { manifest, keys }
}
