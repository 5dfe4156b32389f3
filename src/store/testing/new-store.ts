import { firstColumn, openSqlite, type SqliteDatabase } from '../../base/index.js'
import { sqliteDialect } from '../dialect.js'
import { ledgerStatement } from '../migrations/index.js'
import type { Migration } from '../migrations/migration.js'

/** Schema and rows that the migrations create in an empty SQLite file: `npm run docs` writes them to `new-store.json`. */
export interface NewStore {
  /** Names of the migrations. */
  readonly migrations: readonly string[]
  /** Statements that create the same schema and rows; the table of the applied migrations stays empty. */
  readonly statements: readonly string[]
}

const SCHEMA = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence' ORDER BY rowid"
const TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid"

/** Runs the migrations, and describes their result. */
export function describeNewStore(migrations: readonly Migration[]): NewStore {
  const { types } = sqliteDialect
  const made = openSqlite(':memory:')
  try {
    for (const statement of [ledgerStatement(types), ...migrations.flatMap((each) => each.statements(types))])
      made.exec(statement)
    const rows = firstColumn(made.prepare(TABLES).all()).flatMap((table) => insertsOf(made, String(table)))
    const statements = [...firstColumn(made.prepare(SCHEMA).all()).map(String), ...rows]
    return { migrations: migrations.map(({ name }) => name), statements }
  } finally {
    made.close()
  }
}

function insertsOf(db: SqliteDatabase, table: string): string[] {
  const rows = db.prepare(`SELECT * FROM ${table} ORDER BY rowid`).all() as Record<string, unknown>[]
  const [first] = rows
  if (first === undefined) return []
  const values = rows.map((row) => `(${Object.values(row).map(literal).join(', ')})`)
  return [`INSERT INTO ${table} (${Object.keys(first).join(', ')}) VALUES ${values.join(', ')}`]
}

function literal(value: unknown): string {
  if (value === null) return 'NULL'
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  throw new Error('a migration inserts a value of another type')
}
