import { nameOfSqliteError } from './sqlite/error-names.js'

/** The code that Node, SQLite or PostgreSQL gave an error, such as `ENOENT` or `SQLITE_FULL`; empty if it has none. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error && 'code' in error)) return ''
  // Node's driver has one code for all errors of SQLite, and SQLite's number in `errcode`.
  const isOfSqlite = error.code === 'ERR_SQLITE_ERROR' && 'errcode' in error
  return isOfSqlite ? nameOfSqliteError(Number(error.errcode)) : String(error.code)
}

/** Codes of a full disk, an exceeded quota, and a file system that is read-only, as after a disk error. */
const UNWRITABLE = new Set(['ENOSPC', 'EDQUOT', 'EROFS'])

/** Whether an error says that a disk takes no more data. */
export const isUnwritable = (error: unknown): boolean => UNWRITABLE.has(codeOf(error))

const OUT_OF_DESCRIPTORS = new Set(['EMFILE', 'ENFILE'])

/** Whether something failed because this process or machine has no file descriptor left. */
export const isOutOfDescriptors = (error: unknown): boolean => OUT_OF_DESCRIPTORS.has(codeOf(error))

/** Ends a switch over a union: compiles only when every member has its case. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`)
}
