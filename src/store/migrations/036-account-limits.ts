import type { Migration } from './migration.js'

/**
 * Limits of messages a day; the first tokens of an account among its other queue tokens. Their rows are added at the start
 * (`accounts/transactions/first-tokens.ts`), also after a version without them has changed the tokens.
 */
export const accountLimits: Migration = {
  number: 36,
  name: 'account_limits',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE accounts ADD COLUMN daily_messages ${t.integer}`,
    `CREATE TABLE published_days (
      account_id ${t.text} PRIMARY KEY,
      day ${t.integer} NOT NULL,
      published ${t.integer} NOT NULL
    )`,
    `ALTER TABLE queue_tokens ADD COLUMN first_token ${t.text} CHECK (first_token IN ('all', 'read'))`,
  ],
}
