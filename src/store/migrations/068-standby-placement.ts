import type { Migration } from './migration.js'

/** Who chooses the node of a standby; see `databases/standbys/`. */
export const standbyPlacement: Migration = {
  number: 68,
  name: 'standby_placement',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE database_standbys ADD COLUMN placement ${t.text} NOT NULL DEFAULT 'named'
      CHECK (placement IN ('named', 'auto'))`,
  ],
}
