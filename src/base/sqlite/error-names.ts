/** SQLite's result codes by number, from https://sqlite.org/rescode.html. */
const PRIMARY = [
  ...[
    'OK',
    'ERROR',
    'INTERNAL',
    'PERM',
    'ABORT',
    'BUSY',
    'LOCKED',
    'NOMEM',
    'READONLY',
    'INTERRUPT',
    'IOERR',
    'CORRUPT',
  ],
  ...[
    'NOTFOUND',
    'FULL',
    'CANTOPEN',
    'PROTOCOL',
    'EMPTY',
    'SCHEMA',
    'TOOBIG',
    'CONSTRAINT',
    'MISMATCH',
    'MISUSE',
    'NOLFS',
  ],
  ...['AUTH', 'FORMAT', 'RANGE', 'NOTADB'],
]

/** Extended codes are the primary code in the low byte and one of these above it, counted from 1. */
const EXTENDED: Readonly<Record<string, readonly string[]>> = {
  IOERR: [
    ...[
      'READ',
      'SHORT_READ',
      'WRITE',
      'FSYNC',
      'DIR_FSYNC',
      'TRUNCATE',
      'FSTAT',
      'UNLOCK',
      'RDLOCK',
      'DELETE',
      'BLOCKED',
    ],
    ...[
      'NOMEM',
      'ACCESS',
      'CHECKRESERVEDLOCK',
      'LOCK',
      'CLOSE',
      'DIR_CLOSE',
      'SHMOPEN',
      'SHMSIZE',
      'SHMLOCK',
      'SHMMAP',
    ],
    ...['SEEK', 'DELETE_NOENT', 'MMAP', 'GETTEMPPATH', 'CONVPATH', 'VNODE', 'AUTH', 'BEGIN_ATOMIC', 'COMMIT_ATOMIC'],
    ...['ROLLBACK_ATOMIC', 'DATA', 'CORRUPTFS', 'IN_PAGE'],
  ],
  BUSY: ['RECOVERY', 'SNAPSHOT', 'TIMEOUT'],
  CANTOPEN: ['NOTEMPDIR', 'ISDIR', 'FULLPATH', 'CONVPATH', 'DIRTYWAL', 'SYMLINK'],
  CORRUPT: ['VTAB', 'SEQUENCE', 'INDEX'],
  READONLY: ['RECOVERY', 'CANTLOCK', 'ROLLBACK', 'DBMOVED', 'CANTINIT', 'DIRECTORY'],
  CONSTRAINT: [
    ...['CHECK', 'COMMITHOOK', 'FOREIGNKEY', 'FUNCTION', 'NOTNULL', 'PRIMARYKEY', 'TRIGGER', 'UNIQUE', 'VTAB', 'ROWID'],
    ...['PINNED', 'DATATYPE'],
  ],
}

/** SQLite's name for a result code: `SQLITE_IOERR_WRITE` for 778. Unknown extended codes get their primary name. */
export function nameOfSqliteError(code: number): string {
  const primary = PRIMARY[code & 0xff] ?? 'ERROR'
  const extended = EXTENDED[primary]?.[(code >> 8) - 1]
  return extended === undefined ? `SQLITE_${primary}` : `SQLITE_${primary}_${extended}`
}
