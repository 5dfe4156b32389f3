import type { Migration } from './migration.js'

/** When a run was paused, and by whom, as JSON of `RunPause`. No index mentions them: see migration 44. */
export const pausedRuns: Migration = {
  number: 56,
  name: 'paused_runs',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE runs ADD COLUMN paused_at ${t.integer}`,
    `ALTER TABLE runs ADD COLUMN pause ${t.text}`,
  ],
}
