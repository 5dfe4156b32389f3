import type { Migration } from './migration.js'

/** Who is signed in to the console. */
export const consoleSessions: Migration = {
  number: 15,
  name: 'console_sessions',
  breaking: false,
  statements: (t) => [
    // Without a reference to the key: a session whose key is gone opens nothing and is swept when its time is over.
    `CREATE TABLE console_sessions (
      secret_hash ${t.text} PRIMARY KEY,
      key_id ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL,
      expires_at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at)',
  ],
}
