import type { Migration } from './migration.js'

/** The run that replaced another one with the same debounce or singleton key. No index mentions it: see migration 44. */
export const replacedRuns: Migration = {
  number: 90,
  name: 'replaced_runs',
  breaking: false,
  statements: (t) => [`ALTER TABLE runs ADD COLUMN replaced_by ${t.integer}`],
}
