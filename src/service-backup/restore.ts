import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { codeOf, makeFolder, syncPath } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { adoptSnapshot } from '../fleet/index.js'
import { type Manifest, type SavedDatabase, snapshotPath } from './manifest.js'
import { readUsable } from './verify.js'

const FILES = 'files/'

/**
 * Makes a new data directory from a backup. A rename makes the directory appear when all of it is on the disk.
 * @param dataDir must be missing or empty.
 * @throws HomeportError `service_backup_unusable`, `service_restore_refused`; then nothing was changed.
 */
export async function restoreService(folder: string, dataDir: string): Promise<Manifest> {
  const target = resolve(dataDir)
  await refuseUsed(target)
  const manifest = await readUsable(folder)
  const staged = `${target}.restoring`
  await rm(staged, { recursive: true, force: true })
  try {
    await fill(folder, staged, manifest)
    await rename(staged, target)
  } catch (error) {
    await rm(staged, { recursive: true, force: true }).catch(() => undefined)
    if (error instanceof HomeportError) throw error
    const problem = `${target} could not be written (${codeOf(error) || 'an internal error'})`
    throw new HomeportError('service_restore_refused', { problem }, { cause: error })
  }
  await syncPath(dirname(target))
  return manifest
}

async function refuseUsed(target: string): Promise<void> {
  const found = await readdir(target).catch((cause: unknown) => {
    if (codeOf(cause) === 'ENOENT') return []
    throw new HomeportError('service_restore_refused', { problem: `${target} is not a directory that can be used` })
  })
  if (found.length === 0) return
  const problem = `The data directory ${target} is not empty: it has ${found.slice(0, 3).join(', ')}`
  throw new HomeportError('service_restore_refused', { problem })
}

async function fill(folder: string, into: string, { files, databases }: Manifest): Promise<void> {
  await makeFolder(into)
  for (const { path } of files) {
    if (path !== 'homeport.sqlite' && !path.startsWith(FILES)) continue
    const to = join(into, path.startsWith(FILES) ? path.slice(FILES.length) : path)
    await mkdir(dirname(to), { recursive: true, mode: 0o700 })
    await copyFile(join(folder, path), to)
    await syncPath(to)
  }
  for (const database of databases) if (database.state === 'saved') await place(folder, into, database)
  await syncPath(into)
}

/** Makes the snapshot the data of its database, as a restore of a single database does. */
async function place(folder: string, into: string, { databaseId, region, persistence }: SavedDatabase): Promise<void> {
  const copy = join(into, 'snapshot.rdb')
  await copyFile(join(folder, snapshotPath(databaseId)), copy)
  await adoptSnapshot(join(into, 'databases', databaseId, region), persistence, copy)
  await rm(copy)
}
