import type { Migration } from './migration.js'

/** Workflow runs, their lists of steps, and what they wait for. */
export const runs: Migration = {
  number: 4,
  name: 'runs',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE runs (
      seq ${t.serial},
      run_id ${t.text} NOT NULL,
      account_id ${t.text} NOT NULL,
      url ${t.text} NOT NULL,
      host ${t.text} NOT NULL,
      path ${t.text} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED')),
      contact ${t.text} NOT NULL CHECK (contact IN ('unknown', 'known')),
      created_at ${t.integer} NOT NULL,
      finished_at ${t.integer} CHECK ((finished_at IS NULL) = (state = 'RUN_STARTED')),
      labels ${t.text} NOT NULL,
      flow_key ${t.text},
      caller_ip ${t.text} NOT NULL,
      response ${t.text},
      failure ${t.text},
      failure_state ${t.text} CHECK (failure_state IS NULL OR state = 'RUN_FAILED'),
      dlq_id ${t.text} CHECK (dlq_id IS NULL OR state = 'RUN_FAILED'),
      parent_seq ${t.integer},
      parent ${t.text},
      UNIQUE (account_id, run_id)
    )`,
    'CREATE INDEX runs_by_account ON runs (account_id, seq)',
    // For the selection of bulk actions: active runs only, however many have ended.
    "CREATE INDEX runs_unfinished ON runs (account_id, seq) WHERE state = 'RUN_STARTED'",
    'CREATE INDEX runs_dead ON runs (account_id, seq) WHERE dlq_id IS NOT NULL',
    `CREATE TABLE steps (
      run_seq ${t.integer} NOT NULL,
      position ${t.integer} NOT NULL,
      message_id ${t.text} NOT NULL,
      kind ${t.text} NOT NULL CHECK (kind IN ('step', 'toCallback', 'fromCallback', 'failureCall')),
      body ${t.bytes} NOT NULL,
      meta ${t.text},
      created_at ${t.integer} NOT NULL,
      PRIMARY KEY (run_seq, position)
    )`,
    // Ids grow with time, so this index grows at its end.
    'CREATE INDEX steps_by_message ON steps (message_id)',
    `CREATE TABLE run_waits (
      seq ${t.serial},
      account_id ${t.text} NOT NULL,
      run_seq ${t.integer} NOT NULL,
      event_id ${t.text} NOT NULL,
      message_id ${t.text} NOT NULL,
      wait ${t.text} NOT NULL,
      deadline ${t.integer} NOT NULL,
      created_at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX run_waits_by_event ON run_waits (account_id, event_id)',
    'CREATE INDEX run_waits_by_run ON run_waits (run_seq)',
    `CREATE TABLE run_events (
      seq ${t.serial},
      run_seq ${t.integer} NOT NULL,
      event_id ${t.text} NOT NULL,
      data ${t.bytes} NOT NULL,
      created_at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX run_events_by_run ON run_events (run_seq, event_id)',
  ],
}
