import type { Migration } from './migration.js'

/** Databases with a copy on a second node; see `databases/standbys/`. */
export const databaseStandbys: Migration = {
  number: 64,
  name: 'database_standbys',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE database_standbys (
      database_id ${t.text} PRIMARY KEY,
      node ${t.text} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('asked', 'copying', 'following', 'behind')),
      epoch ${t.integer} NOT NULL,
      complete_until ${t.integer},
      home_offset ${t.integer},
      standby_offset ${t.integer},
      problem ${t.text},
      asked_at ${t.integer} NOT NULL
    )`,
  ],
}
