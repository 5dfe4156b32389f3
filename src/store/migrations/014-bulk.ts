import type { Migration } from './migration.js'

const COPIED = 'action_id, account_id, selector, actor, source, ip, matched, already_finished, already_cancelled'

/**
 * Bulk actions of every kind, with controls. Both tables are recreated, because a CHECK constraint cannot be changed in
 * place. Actions get new numbers in the old order, because PostgreSQL assigns them.
 */
export const bulkKinds: Migration = {
  number: 14,
  name: 'bulk_kinds',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE bulk_actions_new (
      seq ${t.serial},
      action_id ${t.text} NOT NULL UNIQUE,
      account_id ${t.text} NOT NULL,
      kind ${t.text} NOT NULL CHECK (kind IN ('cancelRuns', 'cancelMessages', 'resumeRuns', 'restartRuns',
        'deleteDeadRuns', 'deleteDeadLetters', 'retryDeadLetters')),
      state ${t.text} NOT NULL CHECK (state IN ('running', 'paused', 'finished', 'aborted')),
      selector ${t.text} NOT NULL,
      settings ${t.text},
      reason ${t.text},
      rate_per_second ${t.integer} CHECK (rate_per_second > 0),
      fence ${t.text},
      fence_until ${t.integer},
      actor ${t.text} NOT NULL,
      source ${t.text} NOT NULL,
      ip ${t.text} NOT NULL,
      matched ${t.integer} NOT NULL,
      succeeded ${t.integer} NOT NULL,
      already_finished ${t.integer} NOT NULL,
      already_cancelled ${t.integer} NOT NULL,
      not_found ${t.integer} NOT NULL,
      failed ${t.integer} NOT NULL,
      skipped ${t.integer} NOT NULL,
      created_at ${t.integer} NOT NULL,
      finished_at ${t.integer},
      CHECK ((state IN ('finished', 'aborted')) = (finished_at IS NOT NULL)),
      CHECK (skipped = 0 OR state = 'aborted'),
      CHECK (succeeded + already_finished + already_cancelled + not_found + failed + skipped <= matched),
      CHECK (state IN ('running', 'paused')
        OR succeeded + already_finished + already_cancelled + not_found + failed + skipped = matched),
      CHECK ((fence IS NULL) = (fence_until IS NULL))
    )`,
    `INSERT INTO bulk_actions_new (${COPIED}, not_found, failed, created_at, finished_at, kind, state, succeeded, skipped)
      SELECT ${COPIED}, not_found, failed, created_at, finished_at, 'cancelRuns', state, cancelled, 0
      FROM bulk_actions ORDER BY seq`,
    `CREATE TABLE bulk_chunks_new (
      action_seq ${t.integer} NOT NULL REFERENCES bulk_actions_new (seq) ON DELETE CASCADE,
      chunk ${t.integer} NOT NULL,
      items ${t.integer} NOT NULL CHECK (items > 0),
      pending ${t.integer} NOT NULL CHECK (pending BETWEEN 0 AND items),
      seqs ${t.bytes},
      absent ${t.text},
      outcomes ${t.bytes},
      PRIMARY KEY (action_seq, chunk),
      CHECK ((seqs IS NULL) <> (absent IS NULL))
    )`,
    `INSERT INTO bulk_chunks_new (action_seq, chunk, items, pending, seqs, absent, outcomes)
      SELECT fresh.seq, chunk, items, pending, seqs, absent, outcomes
      FROM bulk_chunks JOIN bulk_actions AS old ON old.seq = action_seq
      JOIN bulk_actions_new AS fresh ON fresh.action_id = old.action_id`,
    'DROP TABLE bulk_chunks',
    'DROP TABLE bulk_actions',
    'ALTER TABLE bulk_actions_new RENAME TO bulk_actions',
    'ALTER TABLE bulk_chunks_new RENAME TO bulk_chunks',
    'CREATE INDEX bulk_actions_by_account ON bulk_actions (account_id, seq)',
    "CREATE INDEX bulk_actions_running ON bulk_actions (seq) WHERE state = 'running'",
    'CREATE INDEX bulk_actions_fenced ON bulk_actions (fence_until) WHERE fence_until IS NOT NULL',
    'CREATE INDEX bulk_chunks_pending ON bulk_chunks (action_seq, chunk) WHERE pending > 0',
    `ALTER TABLE runs ADD COLUMN canceled_by ${t.integer}`,
  ],
}
