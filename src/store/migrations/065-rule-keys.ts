import type { Migration } from './migration.js'

/** The messages that hold debounce and singleton keys. */
export const ruleKeys: Migration = {
  number: 65,
  name: 'rule_keys',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE rule_keys (
      account_id ${t.text} NOT NULL,
      rule ${t.text} NOT NULL CHECK (rule IN ('debounce', 'singleton')),
      rule_key ${t.text} NOT NULL,
      message_id ${t.text} NOT NULL,
      since ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, rule, rule_key)
    )`,
    'CREATE INDEX rule_keys_by_age ON rule_keys (since)',
    'CREATE INDEX rule_keys_by_message ON rule_keys (account_id, message_id)',
  ],
}
