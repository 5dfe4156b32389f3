import type { Migration } from './migration.js'

/** Which account is the operator's, and which are suspended or being deleted. */
export const operator: Migration = {
  number: 31,
  name: 'operator',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE accounts ADD COLUMN operator ${t.integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE accounts ADD COLUMN state ${t.text} NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'suspended', 'deleting'))`,
    `ALTER TABLE accounts ADD COLUMN database_limit ${t.integer}`,
    // Before this migration, the oldest account was the operator's; a clock that is set back would change which one that is.
    `UPDATE accounts SET operator = 1 WHERE account_id =
      (SELECT account_id FROM accounts ORDER BY created_at, account_id LIMIT 1)`,
  ],
}
