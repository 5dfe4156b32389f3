import type { Migration } from './migration.js'

/** Sessions of the console. */
export const consoleSessions: Migration = {
  number: 15,
  name: 'console_sessions',
  breaking: false,
  statements: (t) => [
    // No foreign key: a session without its API key is invalid and is deleted when it expires.
    `CREATE TABLE console_sessions (
      secret_hash ${t.text} PRIMARY KEY,
      key_id ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL,
      expires_at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at)',
  ],
}
