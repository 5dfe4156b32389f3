/** The code that Node, SQLite or PostgreSQL gave an error, such as `ENOENT` or `SQLITE_FULL`; empty where there is none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
