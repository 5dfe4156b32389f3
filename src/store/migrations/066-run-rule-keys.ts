import type { Migration } from './migration.js'

/** The runs that hold debounce and singleton keys. */
export const runRuleKeys: Migration = {
  number: 66,
  name: 'run_rule_keys',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE run_rule_keys (
      account_id ${t.text} NOT NULL,
      rule ${t.text} NOT NULL CHECK (rule IN ('debounce', 'singleton')),
      rule_key ${t.text} NOT NULL,
      run_seq ${t.integer} NOT NULL,
      since ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, rule, rule_key)
    )`,
    'CREATE INDEX run_rule_keys_by_age ON run_rule_keys (since)',
    'CREATE INDEX run_rule_keys_by_run ON run_rule_keys (run_seq)',
  ],
}
