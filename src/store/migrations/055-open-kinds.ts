import type { Migration } from './migration.js'

/**
 * The kinds of bulk actions are no longer listed in the table: the code checks them, and each new kind needed another list.
 * A constraint cannot be dropped on SQLite, and has a name of its own in each PostgreSQL, so the column is recreated.
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
