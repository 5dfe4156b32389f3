import {
  type AliasedRawBuilder,
  DummyDriver,
  type Expression,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import type { Tables } from './schema/index.js'

/** How column types are spelt in `create table`. All integers hold 53 bits; booleans are the integers 0 and 1. */
export interface ColumnTypes {
  /** An integer primary key that the database assigns, always growing. */
  readonly serial: string
  readonly integer: string
  readonly text: string
  readonly bytes: string
}

/** The differences between the databases, each a small named capability. Everything else is one text for both. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Builds queries; it is never connected to anything. */
  readonly db: Kysely<Tables>
  readonly types: ColumnTypes
  /** `column` is one of the numbers of a list parameter. */
  inNumbers(column: string, list: readonly number[]): RawBuilder<boolean>
  /** `column`, or what an expression makes of several, is one of the texts of a list parameter. */
  inTexts(column: string | Expression<string>, list: readonly string[]): RawBuilder<boolean>
  /** The text in `column` contains `part`, case-sensitive. */
  contains(column: string, part: string | Expression<string>): RawBuilder<boolean>
  /** The text in `column` starts with `prefix`, case-sensitive and without wildcards. */
  startsWith(column: string, prefix: string | Expression<string>): RawBuilder<boolean>
  /** `test` holds for at least one of the texts of a list parameter. */
  someText(list: readonly string[], test: (item: Expression<string>) => RawBuilder<boolean>): RawBuilder<boolean>
  /**
   * The texts of a list parameter as rows to join, in the column `item.value`: to look thousands of them up one by one
   * costs less than to ask which rows are among them, which sorts them first.
   */
  textRows(list: readonly string[]): AliasedRawBuilder<{ value: string }, 'item'>
  /** All values of a column as one text, a JSON list in no certain order: thousands of rows would cost several times as much. */
  listOf(column: string): RawBuilder<string>
  /** Locks the selected rows until the transaction ends, where transactions run side by side. */
  forUpdate<Builder extends { forUpdate(): Builder }>(builder: Builder): Builder
  /** The highest number that a table has ever given to a row; 0 before the first. It never falls, also not by deletions. */
  lastNumber(table: 'messages' | 'runs' | 'audit_log'): RawBuilder<number>
}

function starts(column: string, prefix: string | Expression<string>): RawBuilder<boolean> {
  return sql<boolean>`substr(${sql.ref(column)}, 1, length(${prefix})) = ${prefix}`
}

const refTo = (column: string | Expression<string>): Expression<unknown> =>
  typeof column === 'string' ? sql.ref(column) : column

/** One text of the list that `someText` goes through. */
const ITEM = sql.ref<string>('item.value')

/**
 * Numbers that stand in a query become part of its text. As a parameter, a number such as that of `limit(1)` has SQLite
 * plan the statement anew whenever it is run, to see whether it is small.
 */
class LiteralNumbers extends SqliteQueryCompiler {
  protected override appendValue(value: unknown): void {
    if (typeof value === 'number') this.appendImmediateValue(value)
    else super.appendValue(value)
  }
}

/** SQLite runs write transactions one after the other, so nothing needs a row lock. Lists travel as JSON texts. */
export const sqliteDialect: Dialect = {
  name: 'sqlite',
  db: new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new LiteralNumbers(),
    },
  }),
  types: { serial: 'INTEGER PRIMARY KEY AUTOINCREMENT', integer: 'INTEGER', text: 'TEXT', bytes: 'BLOB' },
  inNumbers: (column, list) => sql<boolean>`${sql.ref(column)} in (select value from json_each(${list}))`,
  inTexts: (column, list) => sql<boolean>`${refTo(column)} in (select value from json_each(${list}))`,
  contains: (column, part) => sql<boolean>`instr(${sql.ref(column)}, ${part}) > 0`,
  startsWith: starts,
  someText: (list, test) => sql<boolean>`exists (select 1 from json_each(${list}) as item where ${test(ITEM)})`,
  textRows: (list) => sql<{ value: string }>`json_each(${list})`.as('item'),
  listOf: (column) => sql<string>`json_group_array(${sql.ref(column)})`,
  forUpdate: (builder) => builder,
  lastNumber: (table) => sql<number>`coalesce((select seq from sqlite_sequence where name = ${sql.lit(table)}), 0)`,
}

/** PostgreSQL runs transactions side by side: a row that is read to be changed is locked. Lists travel as arrays. */
export const postgresDialect: Dialect = {
  name: 'postgres',
  db: new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }),
  types: {
    serial: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
    integer: 'BIGINT',
    // Byte order, as in SQLite: comparisons and sorting must not depend on the server's locale.
    text: 'TEXT COLLATE "C"',
    bytes: 'BYTEA',
  },
  inNumbers: (column, list) => sql<boolean>`${sql.ref(column)} = any(${list}::bigint[])`,
  inTexts: (column, list) => sql<boolean>`${refTo(column)} = any(${list}::text[])`,
  contains: (column, part) => sql<boolean>`strpos(${sql.ref(column)}, ${part}) > 0`,
  startsWith: starts,
  someText: (list, test) =>
    sql<boolean>`exists (select 1 from unnest(${list}::text[]) as item (value) where ${test(ITEM)})`,
  textRows: (list) => sql<{ value: string }>`unnest(${list}::text[])`.as<'item'>(sql`item (value)`),
  listOf: (column) => sql<string>`coalesce(json_agg(${sql.ref(column)})::text, '[]')`,
  forUpdate: (builder) => builder.forUpdate(),
  lastNumber: (table) =>
    sql<number>`(select case when is_called then last_value else 0 end from ${sql.table(`${table}_seq_seq`)})`,
}
