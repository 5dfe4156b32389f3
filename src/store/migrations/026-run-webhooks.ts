import type { Migration } from './migration.js'

/** Webhooks of runs. */
export const runWebhooks: Migration = {
  number: 26,
  name: 'run webhooks',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE run_webhooks (
      run_seq ${t.integer} NOT NULL,
      event_id ${t.text} NOT NULL,
      PRIMARY KEY (run_seq, event_id)
    )`,
  ],
}
