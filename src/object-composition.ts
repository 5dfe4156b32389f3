import type { Config } from './config/index.js'
import type { DatabasesDeps } from './databases/index.js'
import { BACKUP_KEYS_FILE, BackupKeys, ObjectStorage } from './objects/index.js'
import type { Logger, Problems } from './telemetry/index.js'

/** The variables with the credentials of the storage. */
export type StorageVariables = Readonly<Record<string, string | undefined>>

/** The client of the configured storage; undefined without one. */
function storageOf(config: Config, variables: StorageVariables): ObjectStorage | undefined {
  const { backups: place, backupsEndpoint: endpoint, backupsRegion: region, backupsPathStyle: pathStyle } = config
  const credentials = { file: config.backupsCredentialsFile, environment: variables }
  return place && new ObjectStorage({ place, endpoint, region, pathStyle, credentials })
}

/** Where backups are kept besides the disk. A server whose keys cannot be read serves databases without it. */
export async function openBackupStorage(
  config: Config,
  variables: StorageVariables,
  problems: Problems,
  logger: Pick<Logger, 'warn'>,
): Promise<DatabasesDeps['objectStorage']> {
  const storage = storageOf(config, variables)
  if (!storage) return undefined
  try {
    const keys = await BackupKeys.open(config.dataDir)
    if (keys.isNew) logger.warn('backup_key_created', { path: BACKUP_KEYS_FILE })
    const { backupsKeep: count, backupsKeepMs: ageMs, backupsKeepBytes: bytes } = config
    return { storage, keys, retention: { count, ageMs, bytes } }
  } catch (error) {
    problems.report({
      kind: 'backup_storage',
      subject: storage.place,
      severity: 'error',
      title: `Backups are kept on this machine only. ${error instanceof Error ? error.message : 'The keys cannot be read.'}`,
      advice: 'Repair the file backup-keys in the data directory and restart the server: docs/backups.md.',
    })
    await storage.close()
    return undefined
  }
}
