import type { Migration } from './migration.js'

/** Which run goes on in the place of one that has failed: what is addressed to that one is for this one. */
export const resumedRuns: Migration = {
  number: 22,
  name: 'resumed runs',
  breaking: false,
  statements: (t) => [`ALTER TABLE runs ADD COLUMN resumed_as ${t.integer}`],
}
