import type { Migration } from './migration.js'

/** Times of a step: when its deliveries were due, how long they waited for flow control, when they began and ended. */
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
