import type { Migration } from './migration.js'

/** The files of databases that another node has taken over, which their old home has kept. */
export const setAsideFiles: Migration = {
  number: 95,
  name: 'set_aside_files',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE set_aside_files (
      node ${t.text} NOT NULL,
      path ${t.text} NOT NULL,
      database_id ${t.text} NOT NULL,
      size_bytes ${t.integer} NOT NULL,
      taken_at ${t.integer} NOT NULL,
      PRIMARY KEY (node, path)
    )`,
  ],
}
