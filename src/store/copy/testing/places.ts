import { join } from 'node:path'
import pg from 'pg'
import { firstColumn, openSqlite, type SqliteDatabase } from '../../../base/index.js'
import { migratedDataDir } from '../../testing/migrated-file.js'
import { tablesToCopy } from '../catalog.js'

/** Opens the SQLite file of a data directory, outside of any store. */
export function onFile<Result>(dataDir: string, work: (db: SqliteDatabase) => Result): Result {
  const db = openSqlite(join(dataDir, 'homeport.sqlite'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** Runs statements in the database of a URL. Returns the rows of the last one. */
export async function onPostgres(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

/** A data directory with a new store, filled by `fill`. */
export function newDataDir(fill: (db: SqliteDatabase) => void, id = 'installation 1'): string {
  const dataDir = migratedDataDir()
  onFile(dataDir, (db) => {
    fill(db)
    db.prepare('INSERT OR IGNORE INTO installation (place, installation_id, created_at) VALUES (1, ?, 1)').run(id)
  })
  return dataDir
}

/** Every table in the SQLite store of a data directory, as lines of SQL literals, with the numbers that tables have assigned. */
export function dump(dataDir: string): Record<string, string> {
  return onFile(dataDir, (db) => {
    const tables = tablesToCopy().map(({ name, columns, key }) => {
      const values = columns.map((column) => `quote("${column.name}")`).join(" || ',' || ")
      const order = key.map((column) => `"${column}"`).join(', ')
      const rows = firstColumn(db.prepare(`SELECT ${values} FROM ${name} ORDER BY ${order}`).all())
      return [name, rows.join('\n')] as const
    })
    const numbers = db.prepare('SELECT name, seq FROM sqlite_sequence WHERE seq > 0 ORDER BY name').all()
    return { ...Object.fromEntries(tables), numbers: JSON.stringify(numbers) }
  })
}

/** Adds this many entries to the audit log. */
export function addEntries(db: SqliteDatabase, count: number): void {
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO audit_log (log_id, account_id, actor, source, action, entity, details, ip, at)
      SELECT 'log' || i, 'a', 'me', 'api', 'act', 'e', '{}', '::1', i FROM n`,
  ).run(count)
}

const QUIET_ROW = {
  kind: 'http',
  state: 'pending',
  url: 'u',
  method: 'POST',
  headers: '{}',
  config: '{}',
  max_retries: 3,
  retried: 0,
  next_at: 1,
  created_at: 1,
  labels: '',
  host: 'h',
  path: '/',
}

/** Adds a message with these columns beside the necessary ones. */
export function addMessage(db: SqliteDatabase, columns: Readonly<Record<string, unknown>>): void {
  const row = { account_id: 'a', ...QUIET_ROW, ...columns }
  const names = Object.keys(row)
  const marks = names.map(() => '?').join(', ')
  db.prepare(`INSERT INTO messages (${names.join(', ')}) VALUES (${marks})`).run(...Object.values(row))
}
