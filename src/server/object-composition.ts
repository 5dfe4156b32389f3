import { join } from 'node:path'
import { type Config, parseObjectPlace } from '../config/index.js'
import type { DatabasesDeps } from '../databases/index.js'
import { BACKUP_KEYS_FILE, BackupKeys, type StorageConfig, type StorageVariables, storageAt } from '../objects/index.js'
import { type BackupPlace, folderPlace, StoredPlace } from '../service-backup/index.js'
import type { Logger, Problems } from '../telemetry/index.js'

/** Parses the place of a backup of the whole service: a folder of this machine, or a place in object storage. */
export function serviceBackupPlaces(
  config: StorageConfig & Pick<Config, 'dataDir'>,
  variables: StorageVariables,
): (to: string) => BackupPlace | undefined {
  return (to) => {
    const place = parseObjectPlace(to)
    if (!place) return folderPlace(to)
    return new StoredPlace({
      storage: storageAt(place, config, variables),
      keys: () => BackupKeys.open(config.dataDir),
      workDir: join(config.dataDir, 'service-backup'),
    })
  }
}

/** Opens the storage for backups. If its keys cannot be read, the server reports that and keeps backups on its disk only. */
export async function openBackupStorage(
  config: Config,
  variables: StorageVariables,
  problems: Problems,
  logger: Pick<Logger, 'warn'>,
): Promise<DatabasesDeps['objectStorage']> {
  if (!config.backups) return undefined
  const storage = storageAt(config.backups, config, variables)
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
