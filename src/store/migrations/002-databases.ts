import type { Migration } from './migration.js'

/** Databases and the idempotency keys of their creation. */
export const databases: Migration = {
  number: 2,
  name: 'databases',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE databases (
      database_id ${t.text} PRIMARY KEY,
      account_id ${t.text} NOT NULL REFERENCES accounts (account_id),
      name ${t.text} NOT NULL,
      slug ${t.text} NOT NULL UNIQUE,
      port ${t.integer} NOT NULL UNIQUE,
      platform ${t.text} NOT NULL,
      primary_region ${t.text} NOT NULL,
      read_regions ${t.text} NOT NULL,
      plan ${t.text} NOT NULL,
      budget ${t.integer} NOT NULL CHECK (budget >= 0),
      eviction ${t.integer} NOT NULL CHECK (eviction IN (0, 1)),
      tls ${t.integer} NOT NULL CHECK (tls IN (0, 1)),
      persistence ${t.text} NOT NULL CHECK (persistence IN ('append-only', 'snapshot')),
      state ${t.text} NOT NULL CHECK (state IN ('active', 'suspended', 'passive')),
      modifying_state ${t.text} NOT NULL CHECK (modifying_state IN (
        '', 'creating', 'deleting', 'updating_regions', 'changing_plan', 'backing_up', 'restoring'
      )),
      password ${t.text} NOT NULL,
      rest_token ${t.text} NOT NULL UNIQUE,
      read_only_rest_token ${t.text} NOT NULL UNIQUE,
      created_at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX databases_by_account ON databases (account_id, created_at)',
    `CREATE TABLE idempotency_keys (
      account_id ${t.text} NOT NULL,
      key ${t.text} NOT NULL,
      request_hash ${t.text} NOT NULL,
      database_id ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, key)
    )`,
    'CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at)',
  ],
}
