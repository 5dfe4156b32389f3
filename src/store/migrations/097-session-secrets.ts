import type { Migration } from './migration.js'

/**
 * The secret that each session of the console began with, by its hash: the session ends with it. Of a session from before,
 * it is the oldest that may have been the one. NULL is one that a node of an older version has begun.
 */
export const sessionSecrets: Migration = {
  number: 97,
  name: 'session_secrets',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE console_sessions ADD COLUMN key_hash ${t.text}`,
    `UPDATE console_sessions SET key_hash = (
      SELECT CASE WHEN console_sessions.created_at < api_keys.previous_until THEN api_keys.previous_hash ELSE api_keys.key_hash END
      FROM api_keys WHERE api_keys.key_id = console_sessions.key_id)`,
  ],
}
