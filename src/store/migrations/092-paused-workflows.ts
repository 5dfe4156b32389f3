import type { Migration } from './migration.js'

/** Workflows whose runs begin paused, by account and URL. */
export const pausedWorkflows: Migration = {
  number: 92,
  name: 'paused_workflows',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE paused_workflows (
      account_id ${t.text} NOT NULL,
      url ${t.text} NOT NULL,
      paused_at ${t.integer} NOT NULL,
      pause ${t.text} NOT NULL,
      PRIMARY KEY (account_id, url)
    )`,
  ],
}
