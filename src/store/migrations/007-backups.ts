import type { Migration } from './migration.js'

/** Backups of databases, running restores, and the last import of each database. */
export const backups: Migration = {
  number: 7,
  name: 'backups',
  breaking: true,
  statements: (t) => [
    // When the next daily backup is due, Unix milliseconds; NULL without daily backups.
    `ALTER TABLE databases ADD COLUMN next_daily_backup_at ${t.integer}`,
    `CREATE INDEX databases_by_daily_backup ON databases (next_daily_backup_at)
      WHERE next_daily_backup_at IS NOT NULL`,
    `CREATE TABLE backups (
      backup_id ${t.text} PRIMARY KEY,
      database_id ${t.text} NOT NULL,
      name ${t.text} NOT NULL,
      kind ${t.text} NOT NULL CHECK (kind IN ('manual', 'daily', 'safety', 'import')),
      state ${t.text} NOT NULL CHECK (state IN ('pending', 'completed', 'failed')),
      created_at ${t.integer} NOT NULL,
      finished_at ${t.integer},
      size_bytes ${t.integer} NOT NULL,
      key_count ${t.integer} NOT NULL,
      data_bytes ${t.integer} NOT NULL,
      sha256 ${t.text} NOT NULL,
      failure ${t.text}
    )`,
    'CREATE INDEX backups_by_database ON backups (database_id, created_at)',
    "CREATE INDEX backups_pending ON backups (backup_id) WHERE state = 'pending'",
    `CREATE TABLE restores (
      database_id ${t.text} PRIMARY KEY,
      backup_id ${t.text} NOT NULL,
      phase ${t.text} NOT NULL CHECK (phase IN ('preparing', 'replacing')),
      started_at ${t.integer} NOT NULL
    )`,
    `CREATE TABLE imports (
      database_id ${t.text} PRIMARY KEY,
      backup_id ${t.text} NOT NULL,
      source ${t.text} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('reading', 'checking', 'restoring', 'completed', 'failed')),
      keys_read ${t.integer} NOT NULL,
      keys_total ${t.integer},
      bytes_read ${t.integer} NOT NULL,
      started_at ${t.integer} NOT NULL,
      finished_at ${t.integer},
      failure ${t.text}
    )`,
  ],
}
