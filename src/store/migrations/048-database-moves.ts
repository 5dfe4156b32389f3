import type { Migration } from './migration.js'

/**
 * Moves of databases between nodes. The epoch is a table of its own: nodes of the version before read whole rows of
 * `databases`, so a new column there would make their prepared statements fail.
 */
export const databaseMoves: Migration = {
  number: 48,
  name: 'database_moves',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE database_epochs (
      database_id ${t.text} PRIMARY KEY,
      epoch ${t.integer} NOT NULL
    )`,
    `CREATE TABLE database_moves (
      move_id ${t.text} PRIMARY KEY,
      database_id ${t.text} NOT NULL,
      source ${t.text} NOT NULL,
      target ${t.text} NOT NULL,
      epoch ${t.integer} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('asked', 'copying', 'switched', 'aborted', 'done', 'failed')),
      problem ${t.text},
      asked_at ${t.integer} NOT NULL,
      ended_at ${t.integer}
    )`,
    'CREATE INDEX database_moves_by_database ON database_moves (database_id)',
  ],
}
