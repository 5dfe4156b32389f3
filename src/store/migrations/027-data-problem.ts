import type { Migration } from './migration.js'

/** A problem with the data of a database, until its owner decides. */
export const dataProblem: Migration = {
  number: 27,
  name: 'data problem of a database',
  breaking: false,
  statements: (t) => [`ALTER TABLE databases ADD COLUMN data_problem ${t.text}`],
}
