import type { Migration } from './migration.js'

/**
 * The certificate authority of the link between nodes: one row, made by the first node. Its key is as secret as the store:
 * anybody who can read the store can act as a node.
 */
export const clusterAuthority: Migration = {
  number: 42,
  name: 'cluster_authority',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE cluster_authority (
      place ${t.integer} PRIMARY KEY CHECK (place = 1),
      certificate ${t.text} NOT NULL,
      private_key ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL
    )`,
  ],
}
