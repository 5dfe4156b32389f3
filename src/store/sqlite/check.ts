import { stat } from 'node:fs/promises'
import { firstColumn, openSqlite, type SqliteDatabase, yieldToEventLoop } from '../../base/index.js'
import {
  type CheckDepth,
  type Checked,
  COMPLETED,
  CONTENTS,
  changedText,
  contentsOf,
  firstOf,
  IS_UNFINISHED,
  looked,
  MAX_PROBLEMS,
  type RecordedBackup,
  ROWS_AT_ONCE,
  STORED,
  type StoreReport,
  withStored,
} from '../check.js'
import { isIntact } from '../checksum.js'
import { sqliteFileIn } from '../open.js'
import { reasonOf } from '../postgres/errors.js'

/** The quick check does not read larger files. */
const MAX_QUICK_BYTES = 2 * 2 ** 30

/**
 * Checks the SQLite store of a data directory without changing it, even while a server uses it. Errors are part of the
 * report.
 */
export async function checkSqliteStore(dataDir: string, depth: CheckDepth): Promise<StoreReport> {
  const path = sqliteFileIn(dataDir)
  const size = await stat(path).then(
    (found) => found.size,
    () => undefined,
  )
  if (size === undefined) return { kind: 'absent' }
  try {
    const db = openSqlite(path, { readOnly: true })
    try {
      if (isUnfinishedCopy(db)) return { kind: 'unfinished copy' }
      return depth === 'deep' ? await checkDeep(db) : checkQuick(db, size)
    } finally {
      db.close()
    }
  } catch (error) {
    return { kind: 'unusable', reason: reasonOf(error) }
  }
}

function isUnfinishedCopy(db: SqliteDatabase): boolean {
  const hasLedger = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").get() !== undefined
  return hasLedger && Number(firstColumn(db.prepare(IS_UNFINISHED).all())[0]) > 0
}

function checkQuick(db: SqliteDatabase, size: number): StoreReport {
  // Fails if the file is not a database or its first page is damaged.
  db.prepare('SELECT count(*) FROM sqlite_schema').get()
  if (size > MAX_QUICK_BYTES) {
    return { kind: 'read', problems: [], backups: [], looked: 'opened; too large for the quick check, see --deep' }
  }
  return { kind: 'read', problems: pragma(db, 'quick_check'), backups: [], looked: 'quick check' }
}

async function checkDeep(db: SqliteDatabase): Promise<StoreReport> {
  const problems = pragma(db, 'integrity_check')
  let verified = 0
  for (const content of CONTENTS) {
    try {
      for (const row of db.prepare(contentsOf(content)).iterate() as Iterable<Checked>) {
        if (!isIntact(row.content, row.crc)) problems.push(changedText(content, row))
        if (++verified % ROWS_AT_ONCE === 0) await yieldToEventLoop()
      }
    } catch (error) {
      problems.push(`${content[0]}: ${reasonOf(error)}`)
    }
  }
  const hasObjects = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'backup_objects'").get() !== undefined
  const stored = hasObjects ? firstColumn(db.prepare(STORED).all()) : []
  const backups = withStored(db.prepare(COMPLETED).all() as RecordedBackup[], stored)
  return { kind: 'read', problems: firstOf(problems), backups, looked: looked('integrity check', verified) }
}

type Check = 'quick_check' | 'integrity_check'

/** Damage may abort the check itself. Then each table is checked separately, to find the damaged ones. */
function pragma(db: SqliteDatabase, check: Check): string[] {
  try {
    return checkOf(db, check, String(MAX_PROBLEMS))
  } catch (error) {
    const tables = firstColumn(db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()) as string[]
    const problems = tables.flatMap((table) => problemsOfTable(db, check, table))
    return problems.length > 0 ? problems : [reasonOf(error)]
  }
}

function problemsOfTable(db: SqliteDatabase, check: Check, table: string): string[] {
  try {
    return checkOf(db, check, `'${table}'`).map((problem) => `${table}: ${problem}`)
  } catch (error) {
    return [`${table}: ${reasonOf(error)}`]
  }
}

function checkOf(db: SqliteDatabase, check: Check, of: string): string[] {
  const rows = firstColumn(db.prepare(`PRAGMA ${check}(${of})`).all()) as string[]
  return rows.filter((row) => row !== 'ok')
}
