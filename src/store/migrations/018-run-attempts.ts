import type { Migration } from './migration.js'

/** Failed attempts of deliveries that succeeded later, for run logs: their messages are deleted. */
export const runAttempts: Migration = {
  number: 18,
  name: 'run_attempts',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE run_attempts (
      run_seq ${t.integer} NOT NULL,
      message_id ${t.text} NOT NULL,
      retried ${t.integer} NOT NULL,
      started_at ${t.integer} NOT NULL,
      status ${t.integer} NOT NULL,
      headers ${t.text} NOT NULL,
      body ${t.bytes},
      error ${t.text},
      PRIMARY KEY (run_seq, message_id, retried)
    )`,
  ],
}
