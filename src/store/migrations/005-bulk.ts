import type { Migration } from './migration.js'

/** Bulk actions and their sets. */
export const bulk: Migration = {
  number: 5,
  name: 'bulk',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE bulk_actions (
      seq ${t.serial},
      action_id ${t.text} NOT NULL UNIQUE,
      account_id ${t.text} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('running', 'finished')),
      selector ${t.text} NOT NULL,
      actor ${t.text} NOT NULL,
      source ${t.text} NOT NULL,
      ip ${t.text} NOT NULL,
      matched ${t.integer} NOT NULL,
      cancelled ${t.integer} NOT NULL,
      already_finished ${t.integer} NOT NULL,
      already_cancelled ${t.integer} NOT NULL,
      not_found ${t.integer} NOT NULL,
      failed ${t.integer} NOT NULL,
      created_at ${t.integer} NOT NULL,
      finished_at ${t.integer},
      CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
      CHECK (cancelled + already_finished + already_cancelled + not_found + failed <= matched),
      CHECK (state = 'running'
        OR cancelled + already_finished + already_cancelled + not_found + failed = matched)
    )`,
    'CREATE INDEX bulk_actions_by_account ON bulk_actions (account_id, seq)',
    "CREATE INDEX bulk_actions_running ON bulk_actions (seq) WHERE state = 'running'",
    `CREATE TABLE bulk_chunks (
      action_seq ${t.integer} NOT NULL REFERENCES bulk_actions (seq) ON DELETE CASCADE,
      chunk ${t.integer} NOT NULL,
      items ${t.integer} NOT NULL CHECK (items > 0),
      pending ${t.integer} NOT NULL CHECK (pending BETWEEN 0 AND items),
      seqs ${t.bytes},
      absent ${t.text},
      outcomes ${t.bytes},
      PRIMARY KEY (action_seq, chunk),
      CHECK ((seqs IS NULL) <> (absent IS NULL))
    )`,
    'CREATE INDEX bulk_chunks_pending ON bulk_chunks (action_seq, chunk) WHERE pending > 0',
  ],
}
