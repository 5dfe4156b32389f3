import type { Migration } from './migration.js'

/** Where the time of a step went: when deliveries were due, what they waited for, when they began and ended. */
export const stepTimes: Migration = {
  number: 74,
  name: 'step_times',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE steps ADD COLUMN timing ${t.text}`,
    `ALTER TABLE message_attempts ADD COLUMN due_at ${t.integer}`,
    `ALTER TABLE message_attempts ADD COLUMN held_ms ${t.integer}`,
    `ALTER TABLE run_attempts ADD COLUMN due_at ${t.integer}`,
    `ALTER TABLE run_attempts ADD COLUMN held_ms ${t.integer}`,
    `ALTER TABLE run_attempts ADD COLUMN finished_at ${t.integer}`,
  ],
}
