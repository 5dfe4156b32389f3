import type { Migration } from './migration.js'

/**
 * Settings of an account's queue that the management API shows and changes. Tokens are encrypted
 * (`accounts/token-seal.ts`), and NULL where only the hash is known.
 */
export const queueAccounts: Migration = {
  number: 32,
  name: 'queue_accounts',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE accounts ADD COLUMN queue_token ${t.text}`,
    `ALTER TABLE accounts ADD COLUMN queue_read_token ${t.text}`,
    `ALTER TABLE accounts ADD COLUMN queue_read_token_hash ${t.text}`,
    `ALTER TABLE accounts ADD COLUMN queue_plan ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE accounts ADD COLUMN queue_budget ${t.integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE accounts ADD COLUMN queue_production_pack ${t.integer} NOT NULL DEFAULT 0`,
  ],
}
