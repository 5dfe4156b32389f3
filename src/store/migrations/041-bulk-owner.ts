import type { Migration } from './migration.js'

/** A bulk action is processed by one node of a cluster: `nodes.incarnation`; 0 for a server alone. */
export const bulkOwner: Migration = {
  number: 41,
  name: 'bulk_owner',
  breaking: false,
  statements: (t) => [`ALTER TABLE bulk_actions ADD COLUMN owner ${t.integer} NOT NULL DEFAULT 0`],
}
