import type { Migration } from './migration.js'

/** What is wrong with the data of a database, until its owner has decided. */
export const dataProblem: Migration = {
  number: 27,
  name: 'data problem of a database',
  breaking: false,
  statements: (t) => [`ALTER TABLE databases ADD COLUMN data_problem ${t.text}`],
}
