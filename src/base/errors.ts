/** The code that Node, SQLite or PostgreSQL gave an error, such as `ENOENT` or `SQLITE_FULL`; empty if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Ends a switch over a union: compiles only when every member has its case. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`)
}
