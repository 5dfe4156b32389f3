import { define } from './entry.js'

/** Errors of backups of the whole service. */
export const serviceBackupErrors = {
  service_backup_refused: define<{ problem: string }>({
    status: 409,
    text: ({ problem }) => `No backup was started: ${problem}. Nothing was changed.`,
  }),
  service_backup_unusable: define<{ folder: string; reason: string }>({
    status: 400,
    text: ({ folder, reason }) => `The backup ${folder} cannot be used: ${reason}. Nothing was changed.`,
  }),
  service_restore_refused: define<{ problem: string }>({
    status: 409,
    text: ({ problem }) => `${problem}. Nothing was changed. Restore into a new directory.`,
  }),
}
