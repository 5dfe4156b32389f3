import { openSqlite, type SqliteDatabase } from '../../base/index.js'
import { sqliteDialect } from '../dialect.js'
import { ledgerStatement, MIGRATIONS } from '../migrations/index.js'

/**
 * The tables to copy, read from a schema that the migrations create in memory. So a table or column that a later
 * migration adds is copied without a change here.
 */

/** Type of a column, the same in both databases. */
export type ColumnType = 'integer' | 'text' | 'bytes'

/** A table to copy. */
export interface Table {
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
  /** The columns of the primary key, in its order. */
  readonly key: readonly string[]
  /** The column to which the database assigns ascending numbers, if the table has one. */
  readonly numbered: string | undefined
}

/** Tables of the nodes that use a database. */
const CLUSTER_TABLES = [
  ...['nodes', 'node_generations', 'node_regions', 'partitions', 'leases', 'announcements', 'cluster_authority'],
  'database_moves',
  'database_standbys',
]

/** A table that the triggers of `runs` fill; on SQLite it is a view. */
const DERIVED_TABLE = 'open_runs'

/** Tables that describe one database only: its migrations, the progress of a copy, and which servers use it. */
export const LOCAL_TABLES: readonly string[] = [
  'schema_migrations',
  'store_copy',
  'node_holder',
  DERIVED_TABLE,
  ...CLUSTER_TABLES,
]

/** SQLite's names of the types. */
export const SQLITE_TYPES: Readonly<Record<string, ColumnType>> = { INTEGER: 'integer', TEXT: 'text', BLOB: 'bytes' }

let known: readonly Table[] | undefined

/** All tables, those that others refer to first. */
export function tablesToCopy(): readonly Table[] {
  known ??= readCatalog()
  return known
}

function readCatalog(): readonly Table[] {
  const db = openSqlite(':memory:')
  try {
    db.exec(ledgerStatement(sqliteDialect.types))
    for (const migration of MIGRATIONS) {
      for (const statement of migration.statements(sqliteDialect.types)) db.exec(statement)
    }
    return parentsFirst(db, tablesOf(db))
  } finally {
    db.close()
  }
}

const TABLES = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"

interface Described {
  readonly name: string
  readonly sql: string
}

interface ColumnInfo {
  readonly name: string
  readonly type: string
  readonly pk: number
}

function tablesOf(db: SqliteDatabase): Table[] {
  const described = db.prepare(TABLES).all() as Described[]
  return described.filter(({ name }) => !LOCAL_TABLES.includes(name)).map(({ name, sql }) => tableOf(db, name, sql))
}

function tableOf(db: SqliteDatabase, name: string, sql: string): Table {
  const info = db.prepare('SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid').all(name) as ColumnInfo[]
  const keyed = info.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
  if (keyed.length === 0) throw new Error(`the table ${name} has no primary key, so it cannot be copied in batches`)
  const key = keyed.map((column) => column.name)
  const columns = info.map((column) => {
    const type = SQLITE_TYPES[column.type]
    if (type === undefined) throw new Error(`the column ${column.name} of ${name} has the type ${column.type}`)
    return { name: column.name, type }
  })
  return { name, columns, key, numbered: /\bAUTOINCREMENT\b/i.test(sql) ? key[0] : undefined }
}

/** Orders tables so that a row's parents are copied before it. */
function parentsFirst(db: SqliteDatabase, tables: readonly Table[]): readonly Table[] {
  const ordered: Table[] = []
  const visit = (table: Table): void => {
    if (ordered.includes(table)) return
    const parents = db.prepare('SELECT DISTINCT "table" AS name FROM pragma_foreign_key_list(?)').all(table.name)
    for (const { name } of parents as { name: string }[]) {
      const parent = tables.find((other) => other.name === name)
      if (parent && parent !== table) visit(parent)
    }
    ordered.push(table)
  }
  for (const table of tables) visit(table)
  return ordered
}

/** The names of a table's columns, for SQL. All of Homeport's column names are plain lower-case words. */
export const columnList = ({ columns }: Table): string => columns.map(({ name }) => `"${name}"`).join(', ')

/** A column as a database describes it. */
export interface FoundColumn {
  readonly table: string
  readonly name: string
  /** The database's own name of the type. */
  readonly type: string
}

/**
 * How the columns of a store differ from those of this version. Tables of other programs beside them do not matter.
 * @param typeNames the database's names of the types.
 */
export function schemaProblemsIn(
  found: readonly FoundColumn[],
  typeNames: Readonly<Record<string, ColumnType>>,
): readonly string[] {
  return tablesToCopy().flatMap(({ name, columns }) => {
    const own = new Map(found.filter(({ table }) => table === name).map((column) => [column.name, column.type]))
    if (own.size === 0) return [`the table ${name} is missing`]
    const wrong = columns.filter((column) => typeNames[own.get(column.name) ?? ''] !== column.type)
    const extra = [...own.keys()].filter((column) => !columns.some((known) => known.name === column))
    return [
      ...wrong.map((column) => `the column ${column.name} of ${name} is ${own.get(column.name) ?? 'missing'}`),
      ...extra.map((column) => `the column ${column} of ${name} is unknown`),
    ]
  })
}
