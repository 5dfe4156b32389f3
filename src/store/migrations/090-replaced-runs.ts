import type { Migration } from './migration.js'

/** Which run a trigger with a debounce or singleton key started in place of another one. No index mentions it: see migration 44. */
export const replacedRuns: Migration = {
  number: 90,
  name: 'replaced_runs',
  breaking: false,
  statements: (t) => [`ALTER TABLE runs ADD COLUMN replaced_by ${t.integer}`],
}
