import type { Migration } from './migration.js'

/**
 * The hash of the secret with which each session of the console began: the session ends when that secret does. For an
 * existing session, it is the oldest secret that it may have used. NULL: a node of an older version created the session.
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
