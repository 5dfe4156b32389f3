import type { Migration } from './migration.js'

/**
 * Removes the list of the kinds of bulk actions from the table: the code checks them, and each new kind needed a new list.
 * SQLite cannot drop a constraint, and its name differs between PostgreSQL databases, so the column is recreated.
 */
export const openKinds: Migration = {
  number: 55,
  name: 'open_kinds',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE bulk_actions ADD COLUMN open_kind ${t.text} NOT NULL DEFAULT 'cancelRuns'`,
    'UPDATE bulk_actions SET open_kind = kind',
    'ALTER TABLE bulk_actions DROP COLUMN kind',
    'ALTER TABLE bulk_actions RENAME COLUMN open_kind TO kind',
  ],
}
