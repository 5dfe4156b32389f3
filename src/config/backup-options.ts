import * as kinds from './kinds.js'
import { option } from './option.js'

const MINUTE_MS = 60_000
const TIB = 2 ** 40

/** Options of backups in object storage. */
export const BACKUP_OPTIONS = {
  backups: option({
    kind: kinds.optional(kinds.objectPlace),
    default: undefined,
    defaultText: 'none: backups stay on the disk',
    meaning:
      'Encrypted copies of backups are also kept in this bucket of S3-compatible object storage, below this prefix ' +
      '(docs/backups.md).',
    relation:
      'Credentials come from backupsCredentialsFile, else from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment.',
  }),
  backupsEndpoint: option({
    kind: kinds.optional(kinds.baseUrl),
    default: undefined,
    defaultText: 'AWS, by backupsRegion',
    meaning: 'The object storage is reached under this URL.',
    relation: 'Only with backups, or with backupTo in object storage.',
  }),
  backupsRegion: option({
    kind: kinds.awsRegion,
    default: 'us-east-1',
    meaning: 'The region of the bucket. Requests are signed for it.',
  }),
  backupsPathStyle: option({
    kind: kinds.optional(kinds.flag),
    default: undefined,
    defaultText: 'true with backupsEndpoint, false otherwise',
    meaning: 'Requests name the bucket in their path instead of in the host name.',
  }),
  backupsCredentialsFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'the environment',
    meaning:
      'The aws_access_key_id, aws_secret_access_key and aws_session_token of the first profile in this file sign the ' +
      'requests. The file is read for each request, so it can be replaced while the server runs.',
  }),
  backupsKeep: option({
    kind: kinds.integer(1, 100_000),
    default: 30,
    meaning: 'Object storage keeps this many daily backups of a database.',
    relation: 'The newest one always stays. Manual backups stay until they are deleted.',
  }),
  backupsKeepMs: option({
    kind: kinds.durationMs(60 * MINUTE_MS, 36_500 * 24 * 60 * MINUTE_MS),
    default: 30 * 24 * 60 * MINUTE_MS,
    meaning: 'Object storage keeps daily backups this long.',
    relation: 'Whichever of backupsKeep, backupsKeepMs and backupsKeepBytes is reached first applies.',
  }),
  backupsKeepBytes: option({
    kind: kinds.sizeBytes(0, 1024 * TIB),
    default: 0,
    defaultText: '0: no limit',
    meaning: 'The daily backups of this server may use this much object storage; beyond it the oldest are deleted.',
  }),
  backupTo: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'none: only `homeport backup` makes backups',
    meaning:
      'The server backs up the whole service regularly: into this folder, an absolute path, or below this place in ' +
      'object storage, such as s3://bucket/prefix (docs/operations.md).',
    relation: 'backupEvery sets the interval. Only without node, and with the store in SQLite.',
  }),
  backupEvery: option({
    kind: kinds.durationMs(60 * MINUTE_MS, 365 * 24 * 60 * MINUTE_MS),
    default: 24 * 60 * MINUTE_MS,
    meaning: 'The server backs up the whole service when the newest backup in backupTo is this old.',
    relation: 'Only with backupTo.',
  }),
  backupKeep: option({
    kind: kinds.integer(1, 100_000),
    default: 7,
    meaning: 'This many backups of the whole service stay in backupTo.',
    relation: 'Older ones are deleted after the new one has been read back.',
  }),
} as const
