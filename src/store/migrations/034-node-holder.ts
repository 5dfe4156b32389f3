import type { Migration } from './migration.js'

/** Which server uses the store: one row. PostgreSQL only; a SQLite file is locked with its data directory. */
export const nodeHolder: Migration = {
  number: 34,
  name: 'node_holder',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE node_holder (
      place ${t.integer} PRIMARY KEY CHECK (place = 1),
      incarnation ${t.integer} NOT NULL,
      holder ${t.text} NOT NULL,
      name ${t.text} NOT NULL,
      since ${t.integer} NOT NULL
    )`,
    "INSERT INTO node_holder (place, incarnation, holder, name, since) VALUES (1, 0, '', '', 0)",
  ],
}
