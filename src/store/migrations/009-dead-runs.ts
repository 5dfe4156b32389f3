import type { Migration } from './migration.js'

/** Data to resume failed runs, and the order of dead letters. */
export const deadRuns: Migration = {
  number: 9,
  name: 'dead_runs',
  breaking: true,
  statements: (t) => [
    `ALTER TABLE runs ADD COLUMN failure_status ${t.integer}`,
    // Dead letters are listed in the order in which the runs failed.
    'CREATE INDEX runs_dead_by_end ON runs (account_id, finished_at, seq) WHERE dlq_id IS NOT NULL',
    'DROP INDEX runs_dead',
    // Only invoked runs, which are few.
    'CREATE INDEX runs_by_parent ON runs (parent_seq) WHERE parent_seq IS NOT NULL',
    `CREATE TABLE run_remains (
      seq ${t.serial},
      run_seq ${t.integer} NOT NULL,
      kind ${t.text} NOT NULL CHECK (kind IN ('message', 'wait')),
      message_id ${t.text} NOT NULL,
      due_at ${t.integer} NOT NULL,
      data ${t.text} NOT NULL
    )`,
    'CREATE INDEX run_remains_by_run ON run_remains (run_seq)',
  ],
}
