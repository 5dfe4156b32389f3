import type { Migration } from './migration.js'

/** ACL users of a database, and the engine setting that clients may change. */
export const aclUsers: Migration = {
  number: 11,
  name: 'acl_users',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE databases ADD COLUMN acl_users ${t.text} NOT NULL DEFAULT '[]'`,
    `ALTER TABLE databases ADD COLUMN keyspace_events ${t.text} NOT NULL DEFAULT ''`,
  ],
}
