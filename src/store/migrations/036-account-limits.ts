import type { Migration } from './migration.js'

/**
 * Limits of messages a day; rows of `queue_tokens` for the first two tokens of an account. Each start adds missing rows
 * (`accounts/transactions/first-tokens.ts`), because an older version may have changed the tokens.
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
