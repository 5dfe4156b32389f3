import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { firstColumn, openSqlite, type SqliteDatabase } from '../../base/index.js'
import { postgresDialect, sqliteDialect } from '../dialect.js'
import { ledgerStatement, recordOf } from '../migrations/index.js'
import type { Migration } from '../migrations/migration.js'
import type { StorePlace } from './index.js'

/** A column of a table. */
export interface Column {
  readonly table: string
  readonly name: string
  readonly isNullable: boolean
}

/** Direct access to the database of a store, for tests. */
export interface RawStore {
  /** Runs statements, separated by `;`, in one transaction. */
  execute(statements: string): Promise<void>
  /** The whole schema as the database reports it, as sorted lines. */
  schema(): Promise<string[]>
  columns(): Promise<Column[]>
}

const onSqlite = (dataDir: string): RawStore => {
  const on = async <T>(work: (db: SqliteDatabase) => T): Promise<T> => onFile(dataDir, work)
  const schema = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1"
  // SQLite allows NULL in a text primary key, for backward compatibility; Homeport never stores NULL there.
  const columns = `SELECT t.name AS "table", c.name, NOT (c."notnull" OR c.pk) AS isNullable
    FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY 1, 2`
  return {
    // One transaction, as on PostgreSQL: committing after every statement would take seconds.
    execute: (statements) => on((db) => db.exec(`BEGIN; ${statements}; COMMIT`)),
    schema: () => on((db) => firstColumn(db.prepare(schema).all()) as string[]),
    columns: () => on((db) => db.prepare(columns).all() as Column[]),
  }
}

const onPostgres = (url: string): RawStore => {
  const rows = async (statement: string): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query(statement)).rows ?? []
    } finally {
      await client.end()
    }
  }
  const schema = `
    SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, collation_name, is_nullable, is_identity)
      AS line FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', relname, reloptions) FROM pg_class WHERE relnamespace = 'public'::regnamespace
    ORDER BY 1`
  const columns = `SELECT table_name AS "table", column_name AS name, (is_nullable = 'YES')::int AS "isNullable"
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name COLLATE "C", column_name COLLATE "C"`
  return {
    execute: async (statement) => void (await rows(statement)),
    schema: async () => (await rows(schema)).map(({ line }) => String(line)),
    columns: async () => (await rows(columns)) as unknown as Column[],
  }
}

/** Direct access to the database of a place. */
export function raw(place: StorePlace): RawStore {
  return place.location === 'sqlite' ? onSqlite(place.dataDir) : onPostgres(place.location)
}

/** Creates at a place the store of a Homeport with only these migrations. */
export async function createOldStore(place: StorePlace, migrations: readonly Migration[]): Promise<void> {
  const { types } = place.location === 'sqlite' ? sqliteDialect : postgresDialect
  const records = migrations.map((migration) => recordOf(migration, 0))
  const statements = [
    ledgerStatement(types),
    ...migrations.flatMap((migration) => migration.statements(types)),
    ...records,
  ]
  await raw(place).execute(statements.join(';\n'))
}

/** A page of a table or an index. */
export interface DamagedPage {
  /** Name of the table or index. */
  readonly tree: string
  readonly type: 'leaf' | 'internal' | 'overflow'
  /** Index among the pages of this type; negative counts from the end. */
  readonly index: number
}

/** Opens the file of a closed store. */
function onFile<Result>(dataDir: string, work: (db: SqliteDatabase) => Result): Result {
  const db = openSqlite(join(dataDir, 'homeport.sqlite'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** Overwrites a page of a closed store, as a bad block would. */
export function damagePage(dataDir: string, { tree, type, index }: DamagedPage): void {
  const offset = onFile(dataDir, (db) => {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const pages = 'SELECT pgoffset FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path'
    return firstColumn(db.prepare(pages).all(tree, type)).at(index)
  })
  if (typeof offset !== 'number') throw new Error(`${tree} has no ${type} page ${index}`)
  const file = openSync(join(dataDir, 'homeport.sqlite'), 'r+')
  writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, offset)
  closeSync(file)
}

/** Runs a statement on a closed store, to simulate a flipped bit. Returns the number of changed rows. */
export function changeBehind(dataDir: string, statement: string): number {
  return onFile(dataDir, (db) => db.prepare(statement).run().changes)
}
