import { mkdtemp, rm } from 'node:fs/promises'
import type { Command } from 'commander'
import { type ObjectPlace, type OptionName, parseObjectPlace, storageVariablesOfProcess } from '../../config/index.js'
import type { ListedBackup, StoredBackups } from '../../service-backup/index.js'
import { misused, notFound } from '../errors.js'
import { addFlags, configOf } from '../flags.js'

const STORAGE_FLAGS = ['backupsEndpoint', 'backupsRegion', 'backupsPathStyle', 'backupsCredentialsFile'] as const

interface SourceFlags {
  readonly from: string
  readonly keysFile?: string
}

/** Adds the flags that locate backups. @param meaning help text of `--from`. @param others further configuration options. */
export function addSourceFlags(command: Command, meaning: string, others: readonly OptionName[] = []): Command {
  command
    .requiredOption('--from <place>', `${meaning}: a folder, or s3://bucket/prefix`)
    .option('--keys-file <file>', 'a copy of the file backup-keys of the server; for backups in object storage')
  return addFlags(command, [...STORAGE_FLAGS, ...others])
}

/** The complete backups of `--from`, newest first. */
export async function listedIn(command: Command): Promise<readonly ListedBackup[]> {
  const { from } = command.opts<SourceFlags>()
  const place = placeOf(from)
  if (place) return withStored(command, place, (stored) => stored.list())
  const { listBackups } = await import('../../service-backup/index.js')
  return listBackups(from)
}

/**
 * Runs work with the folder of a backup: the backup that `--from` names, or the newest backup in that place. Downloads a
 * backup in object storage to a new folder beside `near`, and deletes that folder afterwards.
 * @param near a path on the disk that has the space.
 */
export async function withBackup<Result>(
  command: Command,
  near: string,
  work: (folder: string, path: string) => Promise<Result>,
): Promise<Result> {
  const { from } = command.opts<SourceFlags>()
  const place = placeOf(from)
  if (!place) {
    const folder = await folderOf(from)
    return work(folder, folder)
  }
  const folder = await mkdtemp(`${near}.download-`)
  try {
    const path = await withStored(command, place, async (stored) => {
      const [newest] = await stored.list()
      if (!newest) throw notFound(`There is no complete backup at ${from}.`)
      await stored.download(newest, folder)
      return newest.path
    })
    return await work(folder, path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** @throws HomeportError `cli_misused` for an invalid URL of object storage. */
function placeOf(from: string): ObjectPlace | undefined {
  const place = parseObjectPlace(from)
  if (place || !from.startsWith('s3:')) return place
  const problem = `"${from}" is not a place in object storage: expected s3://bucket/prefix, with a bucket of 3 to 63 lower-case letters, digits, dots and hyphens.`
  throw misused(problem)
}

async function folderOf(from: string): Promise<string> {
  const { listBackups, readManifest } = await import('../../service-backup/index.js')
  const [newest] = await listBackups(from)
  if (newest) return newest.path
  await readManifest(from)
  return from
}

async function withStored<Result>(
  command: Command,
  place: ObjectPlace,
  work: (stored: StoredBackups) => Promise<Result>,
): Promise<Result> {
  const { from, keysFile } = command.opts<SourceFlags>()
  if (keysFile === undefined) {
    const problem = 'Backups in object storage are encrypted: name a copy of backup-keys with --keys-file.'
    throw misused(problem)
  }
  // The options of object storage are valid only together with a location.
  const config = configOf(command.setOptionValue('backups', from))
  const [{ StoredBackups }, { BackupKeys, storageAt }] = await Promise.all([
    import('../../service-backup/index.js'),
    import('../../objects/index.js'),
  ])
  const storage = storageAt(place, config, storageVariablesOfProcess())
  try {
    return await work(new StoredBackups(storage, await BackupKeys.ofFile(keysFile)))
  } finally {
    await storage.close()
  }
}
