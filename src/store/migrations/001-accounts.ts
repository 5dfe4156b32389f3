import type { Migration } from './migration.js'

/** Accounts, their API keys, and the audit log. */
export const accounts: Migration = {
  number: 1,
  name: 'accounts',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE installation (
      place ${t.integer} PRIMARY KEY CHECK (place = 1),
      installation_id ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL
    )`,
    `CREATE TABLE accounts (
      account_id ${t.text} PRIMARY KEY,
      email ${t.text} NOT NULL UNIQUE,
      type ${t.text} NOT NULL CHECK (type IN ('free', 'paid')),
      queue_user_id ${t.text} NOT NULL UNIQUE,
      queue_token_hash ${t.text} NOT NULL UNIQUE,
      signing_current ${t.text} NOT NULL,
      signing_next ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL
    )`,
    `CREATE TABLE api_keys (
      key_id ${t.text} PRIMARY KEY,
      account_id ${t.text} NOT NULL REFERENCES accounts (account_id),
      name ${t.text} NOT NULL,
      key_hash ${t.text} NOT NULL UNIQUE,
      read_only ${t.integer} NOT NULL CHECK (read_only IN (0, 1)),
      created_at ${t.integer} NOT NULL,
      UNIQUE (account_id, name)
    )`,
    `CREATE TABLE audit_log (
      seq ${t.serial},
      log_id ${t.text} NOT NULL UNIQUE,
      account_id ${t.text} NOT NULL,
      actor ${t.text} NOT NULL,
      source ${t.text} NOT NULL,
      action ${t.text} NOT NULL,
      entity ${t.text} NOT NULL,
      details ${t.text} NOT NULL,
      ip ${t.text} NOT NULL,
      at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX audit_log_by_account ON audit_log (account_id, seq)',
  ],
}
