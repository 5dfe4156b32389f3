import { stat } from 'node:fs/promises'
import type pg from 'pg'
import { firstColumn, openSqlite, type SqliteDatabase, yieldToEventLoop } from '../base/index.js'
import { isIntact } from './checksum.js'
import { UNFINISHED_COPY } from './migrations/index.js'
import { sqliteFileIn } from './open.js'
import { reasonOf, targetOf } from './postgres/connection.js'
import { Connector, end } from './postgres/connector.js'

/** How thoroughly a store is checked: `quick` takes seconds at most, `deep` reads everything. */
export type CheckDepth = 'quick' | 'deep'

/** A completed backup recorded in the store. */
export interface RecordedBackup {
  readonly databaseId: string
  readonly backupId: string
  /** Whether object storage has it, so that its file may be absent here. */
  readonly isStored: boolean
  /** SHA-256 of the file, hexadecimal. */
  readonly sha256: string
}

/** Result of a check. */
export type StoreReport =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
  /** A copy of another store is being written into it, or was interrupted. */
  | { readonly kind: 'unfinished copy' }
  | {
      readonly kind: 'read'
      /** Messages of the database, or sentences of ours; empty if nothing is wrong. */
      readonly problems: readonly string[]
      /** What was checked, in words. */
      readonly looked: string
      /** Completed backups; only for a `deep` check. */
      readonly backups: readonly RecordedBackup[]
    }

/** The quick check does not read larger files. */
const MAX_QUICK_BYTES = 2 * 2 ** 30
const MAX_PROBLEMS = 20
const ROWS_AT_ONCE = 100

const IS_UNFINISHED = `SELECT count(*) AS found FROM schema_migrations WHERE number = ${UNFINISHED_COPY.number}`

/** Contents with checksums: table, column, checksum column, and the column that names a row. */
export const CONTENTS = [
  ['messages', 'body', 'body_crc', 'message_id'],
  ['messages', 'response_body', 'response_crc', 'message_id'],
  ['steps', 'body', 'body_crc', 'message_id'],
  ['run_events', 'data', 'data_crc', 'event_id'],
  ['runs', 'response', 'response_crc', 'run_id'],
  ['schedules', 'body', 'body_crc', 'schedule_id'],
] as const

interface Checked {
  readonly content: Uint8Array | string | null
  readonly crc: number
  readonly name: string
}

const contentsOf = ([table, column, crc, name]: (typeof CONTENTS)[number]): string =>
  `SELECT ${column} AS content, ${crc} AS crc, ${name} AS name FROM ${table} WHERE ${crc} IS NOT NULL`

const COMPLETED = `SELECT database_id AS "databaseId", backup_id AS "backupId", sha256 FROM backups WHERE state = 'completed'`

const STORED = `SELECT backup_id FROM backup_objects WHERE state = 'stored'`

/** A store of an older version has no such table. */
const withStored = (rows: readonly RecordedBackup[], stored: readonly unknown[]): RecordedBackup[] => {
  const ids = new Set(stored)
  return rows.map((row) => ({ ...row, isStored: ids.has(row.backupId) }))
}

const changedText = ([table, column]: (typeof CONTENTS)[number], { name }: Checked): string =>
  `${table}: the ${column} of ${name} has changed since it was written: its checksum differs`

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

/** Checks the store in a PostgreSQL database. PostgreSQL verifies its pages itself if page checksums are enabled. */
export async function checkPostgresStore(url: string, depth: CheckDepth): Promise<StoreReport> {
  let client: pg.Client | undefined
  try {
    client = (await new Connector(targetOf(url)).connect('long')).client
    const found = await client.query("SELECT to_regclass('messages') IS NOT NULL AS there")
    const ledger = await client.query("SELECT to_regclass('schema_migrations') IS NOT NULL AS there")
    if (ledger.rows[0]?.there && Number((await client.query(IS_UNFINISHED)).rows[0]?.found) > 0) {
      return { kind: 'unfinished copy' }
    }
    if (!found.rows[0]?.there) return { kind: 'absent' }
    if (depth === 'quick') return { kind: 'read', problems: [], backups: [], looked: 'answers' }
    return await checkDeepOnPostgres(client)
  } catch (error) {
    return { kind: 'unusable', reason: reasonOf(error) }
  } finally {
    if (client) await end(client)
  }
}

async function checkDeepOnPostgres(client: pg.Client): Promise<StoreReport> {
  const problems: string[] = []
  let verified = 0
  for (const content of CONTENTS) {
    await client.query('BEGIN READ ONLY')
    try {
      await client.query(`DECLARE contents CURSOR FOR ${contentsOf(content)}`)
      for (;;) {
        const { rows } = await client.query<Checked>(`FETCH ${ROWS_AT_ONCE} FROM contents`)
        if (rows.length === 0) break
        verified += rows.length
        for (const row of rows) if (!isIntact(row.content, row.crc)) problems.push(changedText(content, row))
      }
    } catch (error) {
      problems.push(`${content[0]}: ${reasonOf(error)}`)
    }
    await client.query('ROLLBACK')
  }
  const { rows } = await client.query<RecordedBackup>(COMPLETED)
  const known = await client.query("SELECT to_regclass('backup_objects') IS NOT NULL AS there")
  const stored = known.rows[0]?.there ? (await client.query<{ backup_id: string }>(STORED)).rows : []
  const backups = withStored(
    rows,
    stored.map((row) => row.backup_id),
  )
  return { kind: 'read', problems: firstOf(problems), backups, looked: looked('all contents', verified) }
}

const looked = (how: string, verified: number): string => `${how}, ${verified} contents compared with their checksums`

function firstOf(problems: readonly string[]): readonly string[] {
  if (problems.length <= MAX_PROBLEMS) return problems
  return [...problems.slice(0, MAX_PROBLEMS), `and ${problems.length - MAX_PROBLEMS} more`]
}
