import { define } from './entry.js'

/** Errors of object storage and of the sealed files in it. */
export const objectErrors = {
  object_storage_failed: define<{ place: string; reason: string }>({
    status: 503,
    retry: 'later',
    text: ({ place, reason }) => `The object storage ${place} failed: ${reason}.`,
  }),
  object_missing: define<{ object: string }>({
    status: 404,
    text: ({ object }) => `The object storage has no object ${object}. List its backups: homeport db backups stored.`,
  }),
  sealed_unusable: define<{ reason: string }>({
    status: 400,
    text: ({ reason }) => `The sealed file cannot be used: ${reason}. Nothing was changed.`,
  }),
  sealed_key_missing: define<{ key: string; known: string }>({
    status: 400,
    text: ({ key, known }) =>
      `The file is encrypted with the backup key ${key}, and this server has ${known}. Add the line of that key to ` +
      'backup-keys in the data directory. Without it, nobody can read the file.',
  }),
}
