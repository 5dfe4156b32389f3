import { UNFINISHED_COPY } from './migrations/index.js'

/** What a check of a store reads and reports. `sqlite/check.ts` and `postgres/check.ts` implement the check. */

/** How thoroughly a store is checked: `quick` takes seconds at most, `deep` reads everything. */
export type CheckDepth = 'quick' | 'deep'

/** A completed backup recorded in the store. */
export interface RecordedBackup {
  readonly databaseId: string
  readonly backupId: string
  /** Whether object storage has it, so that its file may be absent here. */
  readonly isStored: boolean
  /** SHA-256 of the file, hexadecimal. */
  readonly sha256: string
}

/** Result of a check. */
export type StoreReport =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
  /** A copy of another store is being written into it, or was interrupted. */
  | { readonly kind: 'unfinished copy' }
  | {
      readonly kind: 'read'
      /** Messages of the database, or Homeport's own sentences; empty if nothing is wrong. */
      readonly problems: readonly string[]
      /** What was checked, in words. */
      readonly looked: string
      /** Completed backups; only for a `deep` check. */
      readonly backups: readonly RecordedBackup[]
    }

/** The most problems that a report names. */
export const MAX_PROBLEMS = 20
/** Number of rows to verify before the check yields to the event loop. */
export const ROWS_AT_ONCE = 100

/** Whether the store is an unfinished copy of another store: `found` is 1 or 0. */
export const IS_UNFINISHED = `SELECT count(*) AS found FROM schema_migrations WHERE number = ${UNFINISHED_COPY.number}`

/** Contents with checksums: table, column, checksum column, and the column that names a row. */
export const CONTENTS = [
  ['messages', 'body', 'body_crc', 'message_id'],
  ['messages', 'response_body', 'response_crc', 'message_id'],
  ['steps', 'body', 'body_crc', 'message_id'],
  ['run_events', 'data', 'data_crc', 'event_id'],
  ['runs', 'response', 'response_crc', 'run_id'],
  ['schedules', 'body', 'body_crc', 'schedule_id'],
] as const

/** A content with its checksum. `name` names its row. */
export interface Checked {
  readonly content: Uint8Array | string | null
  readonly crc: number
  readonly name: string
}

/** The statement that reads all contents of a column, as `Checked`. */
export const contentsOf = ([table, column, crc, name]: (typeof CONTENTS)[number]): string =>
  `SELECT ${column} AS content, ${crc} AS crc, ${name} AS name FROM ${table} WHERE ${crc} IS NOT NULL`

/** The completed backups, without `isStored`. */
export const COMPLETED = `SELECT database_id AS "databaseId", backup_id AS "backupId", sha256 FROM backups WHERE state = 'completed'`

/** The ids of the backups that object storage has. */
export const STORED = `SELECT backup_id FROM backup_objects WHERE state = 'stored'`

/** Adds `isStored` to completed backups. @param stored ids from `STORED`; none in an older store, which lacks the table. */
export const withStored = (rows: readonly RecordedBackup[], stored: readonly unknown[]): RecordedBackup[] => {
  const ids = new Set(stored)
  return rows.map((row) => ({ ...row, isStored: ids.has(row.backupId) }))
}

/** The problem of a content that has changed. */
export const changedText = ([table, column]: (typeof CONTENTS)[number], { name }: Checked): string =>
  `${table}: the ${column} of ${name} has changed since it was written: its checksum differs`

/** Describes what a deep check has read. @param how the database's own check. */
export const looked = (how: string, verified: number): string =>
  `${how}, ${verified} contents compared with their checksums`

/** The first `MAX_PROBLEMS` problems, and how many more there are. */
export function firstOf(problems: readonly string[]): readonly string[] {
  if (problems.length <= MAX_PROBLEMS) return problems
  return [...problems.slice(0, MAX_PROBLEMS), `and ${problems.length - MAX_PROBLEMS} more`]
}
