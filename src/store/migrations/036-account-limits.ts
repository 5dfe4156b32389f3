import type { Migration } from './migration.js'

/** A name for a first token that no token by name has. */
const freeName = (name: string): string =>
  `CASE WHEN EXISTS (SELECT 1 FROM queue_tokens t WHERE t.account_id = accounts.account_id AND t.name = '${name}')
    THEN '${name} of ' || account_id ELSE '${name}' END`

/** Limits of messages a day; the first tokens of an account among its other queue tokens. */
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
    // The token of a team that nobody has asked for yet is known to nobody.
    `INSERT INTO queue_tokens (token_id, account_id, name, token_hash, scope, created_at, first_token)
      SELECT 'tok_first_' || account_id, account_id, ${freeName('default')}, queue_token_hash, 'all', created_at, 'all'
      FROM accounts WHERE state <> 'deleting' AND (queue_token IS NOT NULL OR email <> account_id)`,
    `INSERT INTO queue_tokens (token_id, account_id, name, token_hash, scope, created_at, first_token)
      SELECT 'tok_read_' || account_id, account_id, ${freeName('read-only')}, queue_read_token_hash, 'read', created_at, 'read'
      FROM accounts WHERE state <> 'deleting' AND queue_read_token_hash IS NOT NULL`,
  ],
}
