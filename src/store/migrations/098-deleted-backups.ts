import type { Migration } from './migration.js'

/** Backups whose rows are deleted and whose files may still be on the disk of their node. */
export const deletedBackups: Migration = {
  number: 98,
  name: 'deleted_backups',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE deleted_backups (
      backup_id ${t.text} PRIMARY KEY,
      database_id ${t.text} NOT NULL,
      deleted_at ${t.integer} NOT NULL
    )`,
  ],
}
