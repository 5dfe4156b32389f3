import type { Migration } from './migration.js'

/** Users of a database's data that its owner made, and the setting that its clients may change. */
export const aclUsers: Migration = {
  number: 11,
  name: 'acl_users',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE databases ADD COLUMN acl_users ${t.text} NOT NULL DEFAULT '[]'`,
    `ALTER TABLE databases ADD COLUMN keyspace_events ${t.text} NOT NULL DEFAULT ''`,
  ],
}
