import type { Migration } from './migration.js'

/** Whether answers wait for the standby; see `databases/standbys/`. */
export const standbyMode: Migration = {
  number: 69,
  name: 'standby_mode',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE database_standbys ADD COLUMN mode ${t.text} NOT NULL DEFAULT 'async'
      CHECK (mode IN ('async', 'replicated'))`,
  ],
}
