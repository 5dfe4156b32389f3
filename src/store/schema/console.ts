/** A session of the console: a cookie that stands for an API key. */
export interface ConsoleSessionsTable {
  /** SHA-256 of the secret in the cookie, hexadecimal. */
  secret_hash: string
  key_id: string
  created_at: number
  /** Moves on while the session is used. */
  expires_at: number
}

/** Tables of the console. */
export interface ConsoleTables {
  console_sessions: ConsoleSessionsTable
}
