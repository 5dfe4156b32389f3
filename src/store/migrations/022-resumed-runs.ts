import type { Migration } from './migration.js'

/** The run that continues in place of a failed one and receives what is addressed to it. */
export const resumedRuns: Migration = {
  number: 22,
  name: 'resumed runs',
  breaking: false,
  statements: (t) => [`ALTER TABLE runs ADD COLUMN resumed_as ${t.integer}`],
}
