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
import { shared } from './parameter.js'
import type { Tables } from './schema/index.js'

/** SQL names of column types. Integers hold at least 53 bits; booleans are the integers 0 and 1. */
export interface ColumnTypes {
  /** Statements that set storage parameters of a table, such as `fillfactor`; none on SQLite. */
  readonly storage: (table: string, parameters: string) => readonly string[]
  /** Statements that add a column to a partial index, for index-only scans; none on SQLite. */
  readonly including: (column: string, index: string, on: string, where: string) => readonly string[]
  /** Chooses the value for this database. */
  readonly either: <Choice>(choices: Readonly<Record<'sqlite' | 'postgres', Choice>>) => Choice
  /** An integer primary key that the database assigns in ascending order. */
  readonly serial: string
  readonly integer: string
  readonly text: string
  readonly bytes: string
}

/** The differences between the databases, as small named capabilities. Everything else is the same SQL. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Builds queries; it has no connection. */
  readonly db: Kysely<Tables>
  readonly types: ColumnTypes
  /** `column` is one of the numbers of a list parameter. */
  inNumbers(column: string, list: readonly number[]): RawBuilder<boolean>
  /**
   * As `inNumbers`, for a long list that successive statements of a transaction share as the same object: SQLite keeps its
   * numbers in a table from one statement to the next.
   */
  inSharedNumbers(column: string, list: readonly number[]): RawBuilder<boolean>
  /** `column`, or an expression, is one of the texts of a list parameter. */
  inTexts(column: string | Expression<string>, list: readonly string[]): RawBuilder<boolean>
  /**
   * The text in `column` is `value`. No index is used for this condition. Without statistics, SQLite would prefer an index
   * over accounts to a list of rows, and read all rows of the account.
   */
  alsoIs(column: string, value: string | Expression<string>): RawBuilder<boolean>
  /** The text in `column` contains `part`, case-sensitive. */
  contains(column: string, part: string | Expression<string>): RawBuilder<boolean>
  /** The text of a column or expression contains `part`; the case of A to Z is ignored. `part` must be in lower case. */
  mentions(column: string | Expression<string>, part: string | Expression<string>): RawBuilder<boolean>
  /** A member of the JSON object in `column`, as text. NULL without one. */
  member(column: string, name: string): RawBuilder<string>
  /** The first bytes in `column` as text; characters outside ASCII may be escaped. */
  beginning(column: string): RawBuilder<string>
  /** The text in `column` starts with `prefix`, case-sensitive and without wildcards. */
  startsWith(column: string, prefix: string | Expression<string>): RawBuilder<boolean>
  /** `test` is true for at least one text of a list parameter. */
  someText(list: readonly string[], test: (item: Expression<string>) => RawBuilder<boolean>): RawBuilder<boolean>
  /**
   * The texts of a list parameter as rows to join, in the column `item.value`. Thousands of index look-ups cost less than
   * `in`, which sorts the list first.
   */
  textRows(list: readonly string[]): AliasedRawBuilder<{ value: string }, 'item'>
  /** All values of a column as a JSON list, unordered: thousands of rows would cost several times as much. */
  listOf(column: string): RawBuilder<string>
  /** As `listOf`, without NULLs. */
  listOfKnown(column: string): RawBuilder<string>
  /** Locks the selected rows until the end of the transaction, where transactions run concurrently. */
  forUpdate<Builder extends { forUpdate(): Builder }>(builder: Builder): Builder
  /** As `forUpdate`, but skips rows that another transaction has locked. */
  forUpdateSkipLocked<Builder extends { forUpdate(): Builder; skipLocked(): Builder }>(builder: Builder): Builder
  /**
   * Whether a column has one of the values that a subquery selects and locks. They are an array and not rows to join:
   * PostgreSQL would keep a join that it planned while the table was small, and later read all of the large table.
   */
  inLocked(column: string, subquery: Expression<unknown>): RawBuilder<boolean>
  /** The partition of a message: on SQLite 0, because the one node of such a store sends all of them. */
  readonly partition: RawBuilder<number>
  /** The highest number that a table has ever assigned; 0 before the first row. Deletions do not lower it. */
  lastNumber(table: 'messages' | 'runs' | 'audit_log'): RawBuilder<number>
}

/** Compares the lengths first, without reading characters: a text of a list may be far longer than the column. */
const fitsIn = (column: string, part: string | Expression<string>) =>
  sql<boolean>`octet_length(${part}) <= octet_length(${sql.ref(column)})`

function starts(column: string, prefix: string | Expression<string>): RawBuilder<boolean> {
  return sql<boolean>`(${fitsIn(column, prefix)} and substr(${sql.ref(column)}, 1, length(${prefix})) = ${prefix})`
}

function alsoIs(column: string, value: string | Expression<string>): RawBuilder<boolean> {
  return sql<boolean>`${sql.ref(column)} || '' = ${value}`
}

/** Bytes that `beginning` reads. */
const BEGINNING_BYTES = 1_024

const refTo = (column: string | Expression<string>): Expression<unknown> =>
  typeof column === 'string' ? sql.ref(column) : column

/** The current text in `someText`. */
const ITEM = sql.ref<string>('item.value')

/**
 * Writes constant numbers of a query into its SQL. If the number of `limit(1)` were a parameter, SQLite would plan the
 * statement again at each run.
 */
class LiteralNumbers extends SqliteQueryCompiler {
  protected override appendValue(value: unknown): void {
    if (typeof value === 'number') this.appendImmediateValue(value)
    else super.appendValue(value)
  }
}

/** SQLite runs write transactions one after the other, so no row locks are needed. Lists are passed as JSON. */
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
  types: {
    storage: () => [],
    including: () => [],
    either: ({ sqlite }) => sqlite,
    serial: 'INTEGER PRIMARY KEY AUTOINCREMENT',
    integer: 'INTEGER',
    text: 'TEXT',
    bytes: 'BLOB',
  },
  inNumbers: (column, list) => sql<boolean>`${sql.ref(column)} in (select value from json_each(${list}))`,
  // The second condition puts the parameter into the statement: its value is the length of the list.
  inSharedNumbers: (column, list) =>
    sql<boolean>`(${sql.ref(column)} in (select value from temp.shared_numbers) and ${shared(list)} > 0)`,
  inTexts: (column, list) => sql<boolean>`${refTo(column)} in (select value from json_each(${list}))`,
  alsoIs,
  contains: (column, part) => sql<boolean>`(${fitsIn(column, part)} and instr(${sql.ref(column)}, ${part}) > 0)`,
  mentions: (column, part) => sql<boolean>`instr(lower(${refTo(column)}), ${part}) > 0`,
  member: (column, name) => sql<string>`json_extract(${sql.ref(column)}, ${sql.lit(`$.${name}`)})`,
  beginning: (column) => sql<string>`cast(substr(${sql.ref(column)}, 1, ${sql.lit(BEGINNING_BYTES)}) as text)`,
  startsWith: starts,
  // Materialized: otherwise SQLite parses the list again for every row.
  someText: (
    list,
    test,
  ) => sql<boolean>`exists (with item (value) as materialized (select value from json_each(${list}))
    select 1 from item where ${test(ITEM)})`,
  textRows: (list) => sql<{ value: string }>`json_each(${list})`.as('item'),
  listOf: (column) => sql<string>`json_group_array(${sql.ref(column)})`,
  listOfKnown: (column) =>
    sql<string>`json_group_array(${sql.ref(column)}) filter (where ${sql.ref(column)} is not null)`,
  forUpdate: (builder) => builder,
  forUpdateSkipLocked: (builder) => builder,
  inLocked: (column, subquery) => sql<boolean>`${sql.ref(column)} in (${subquery})`,
  // The column lies behind the body, and SQLite walks all pages of a large body to reach it.
  partition: sql.lit(0),
  lastNumber: (table) => sql<number>`coalesce((select seq from sqlite_sequence where name = ${sql.lit(table)}), 0)`,
}

/**
 * Makes JSON readable for PostgreSQL, which refuses U+0000 and unpaired surrogates anywhere in it. `JSON.stringify` writes
 * both as escapes, and no other surrogates as escapes.
 */
const readable = (json: RawBuilder<unknown>) => sql`case when strpos(${json}, '\\u') = 0 then ${json}
  else regexp_replace(${json}, ${sql.lit('\\\\u(0000|d[89a-f][0-9a-f]{2})')}, ${sql.lit('\\\\ufffd')}, 'g') end`

/** PostgreSQL runs transactions concurrently, so rows that are read to be changed are locked. Lists are passed as arrays. */
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
    storage: (table, parameters) => [`ALTER TABLE ${table} SET (${parameters})`],
    including: (column, index, on, where) => [
      `DROP INDEX ${index}`,
      `CREATE INDEX ${index} ON ${on} INCLUDE (${column}) WHERE ${where}`,
    ],
    either: ({ postgres }) => postgres,
    serial: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
    integer: 'BIGINT',
    // Byte order, as in SQLite: comparison and sorting must not depend on the server's locale.
    text: 'TEXT COLLATE "C"',
    bytes: 'BYTEA',
  },
  inNumbers: (column, list) => sql<boolean>`${sql.ref(column)} = any(${list}::bigint[])`,
  inSharedNumbers: (column, list) => sql<boolean>`${sql.ref(column)} = any(${list}::bigint[])`,
  inTexts: (column, list) => sql<boolean>`${refTo(column)} = any(${list}::text[])`,
  alsoIs,
  contains: (column, part) => sql<boolean>`strpos(${sql.ref(column)}, ${part}) > 0`,
  mentions: (column, part) => sql<boolean>`strpos(lower(${refTo(column)} collate "C"), ${part}) > 0`,
  member: (column, name) => sql<string>`((${readable(sql.ref(column))})::json ->> ${sql.lit(name)})`,
  beginning: (column) =>
    sql<string>`encode(substring(${sql.ref(column)} from 1 for ${sql.lit(BEGINNING_BYTES)}), 'escape')`,
  startsWith: starts,
  someText: (list, test) =>
    sql<boolean>`exists (select 1 from unnest(${list}::text[]) as item (value) where ${test(ITEM)})`,
  textRows: (list) => sql<{ value: string }>`unnest(${list}::text[])`.as<'item'>(sql`item (value)`),
  listOf: (column) => sql<string>`coalesce(json_agg(${sql.ref(column)})::text, '[]')`,
  listOfKnown: (column) =>
    sql<string>`coalesce((json_agg(${sql.ref(column)}) filter (where ${sql.ref(column)} is not null))::text, '[]')`,
  forUpdate: (builder) => builder.forUpdate(),
  forUpdateSkipLocked: (builder) => builder.forUpdate().skipLocked(),
  inLocked: (column, subquery) => sql<boolean>`${sql.ref(column)} = any(array(${subquery}))`,
  partition: sql.ref<number>('partition'),
  lastNumber: (table) =>
    sql<number>`(select case when is_called then last_value else 0 end from ${sql.table(`${table}_seq_seq`)})`,
}
