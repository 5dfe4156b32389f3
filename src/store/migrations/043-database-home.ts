import type { Migration } from './migration.js'

/** The node that serves a database, by name. NULL: made by a server that was alone; the node that has its data adopts it. */
export const databaseHome: Migration = {
  number: 43,
  name: 'database_home',
  breaking: false,
  statements: (t) => [`ALTER TABLE databases ADD COLUMN home ${t.text}`],
}
