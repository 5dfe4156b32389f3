import type { Migration } from './migration.js'

/** Databases that their owner has suspended; queue tokens by name; keys that expire and are rotated. */
export const credentials: Migration = {
  number: 30,
  name: 'credentials',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE databases ADD COLUMN suspended_by_owner ${t.integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE api_keys ADD COLUMN expires_at ${t.integer}`,
    `ALTER TABLE api_keys ADD COLUMN last_used_at ${t.integer}`,
    `ALTER TABLE api_keys ADD COLUMN previous_hash ${t.text}`,
    `ALTER TABLE api_keys ADD COLUMN previous_until ${t.integer}`,
    `CREATE TABLE queue_tokens (
      token_id ${t.text} PRIMARY KEY,
      account_id ${t.text} NOT NULL REFERENCES accounts (account_id),
      name ${t.text} NOT NULL,
      token_hash ${t.text} NOT NULL UNIQUE,
      scope ${t.text} NOT NULL CHECK (scope IN ('all', 'publish', 'read', 'queue', 'flow_control')),
      scope_name ${t.text},
      created_at ${t.integer} NOT NULL,
      expires_at ${t.integer},
      last_used_at ${t.integer},
      previous_hash ${t.text},
      previous_until ${t.integer},
      UNIQUE (account_id, name)
    )`,
  ],
}
