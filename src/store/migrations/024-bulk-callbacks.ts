import type { Migration } from './migration.js'

/**
 * Adds actions that repeat failure callbacks, the time of a pause, and an index of open actions. A CHECK constraint cannot
 * be changed in place, so the column is recreated; the table stays, because runs refer to its numbers.
 */
export const bulkCallbacks: Migration = {
  number: 24,
  name: 'bulk_callbacks',
  breaking: true,
  statements: (t) => [
    `ALTER TABLE bulk_actions ADD COLUMN new_kind ${t.text} NOT NULL DEFAULT 'cancelRuns' CHECK (new_kind IN (
      'cancelRuns', 'cancelMessages', 'resumeRuns', 'restartRuns', 'retryFailureCallbacks', 'deleteDeadRuns',
      'deleteDeadLetters', 'retryDeadLetters'))`,
    'UPDATE bulk_actions SET new_kind = kind',
    'ALTER TABLE bulk_actions DROP COLUMN kind',
    'ALTER TABLE bulk_actions RENAME COLUMN new_kind TO kind',
    `ALTER TABLE bulk_actions ADD COLUMN paused_at ${t.integer} CHECK (paused_at IS NULL OR state = 'paused')`,
    `UPDATE bulk_actions SET paused_at = coalesce((SELECT max(at) FROM audit_log
      WHERE audit_log.account_id = bulk_actions.account_id AND entity = action_id AND action = 'Pause Bulk Action'), created_at) WHERE state = 'paused'`,
    'CREATE INDEX bulk_actions_open ON bulk_actions (account_id, seq) WHERE finished_at IS NULL',
  ],
}
