/** The statements that the body of an operation yields, and the functions that yield them. */
import type { HomeportError } from '../contract/errors/errors.js'
import type { StoreDamage } from './damage.js'
import type { Query } from './query.js'
import type { Tables } from './schema/index.js'

/** A statement that an operation yields. */
export type Statement =
  | { readonly kind: 'all'; readonly query: Query<never, unknown>; readonly params: object }
  | { readonly kind: 'change'; readonly query: Query<never, unknown>; readonly params: object }
  | { readonly kind: 'insert'; readonly table: keyof Tables; readonly rows: readonly object[] }
  | {
      readonly kind: 'number'
      readonly table: keyof Tables
      readonly rows: readonly object[]
      /** A column with unique values. */
      readonly key: string
      /** The columns of a unique constraint: rows that violate it are left out. Default: they are an error. */
      readonly unlessTaken?: readonly string[]
      /** Columns in which successive rows usually differ. */
      readonly each?: readonly string[]
    }
  | {
      readonly kind: 'update'
      readonly table: keyof Tables
      /** New values, and those of the columns in `match`. All rows have the same columns. */
      readonly rows: readonly object[]
      /** Columns that find the row to change. The first is the primary key. */
      readonly match: readonly string[]
      /** Constant texts that these columns of the row must have as well. */
      readonly where: Readonly<Record<string, string>>
    }
  | {
      /** Statements that do not need each other's results, in order. */
      readonly kind: 'several'
      readonly statements: readonly Statement[]
      /** Whether these are the last statements, after which the body does not refuse either. */
      readonly isLast: boolean
    }
  | { readonly kind: 'damage'; readonly damage: StoreDamage }

/** The body of a transaction: yields statements, returns its result. */
export type Transaction<Result> = Generator<Statement, Result, unknown>

/** A statement and the type of its result, for `atOnce`. */
export interface Ask<Result> {
  readonly statement: Statement
  /** For types only; never set. */
  readonly __result?: Result
}

/** Asks for all rows of a query. */
export function askAll<Params extends object, Row>(query: Query<Params, Row>, params: Params): Ask<Row[]> {
  return { statement: { kind: 'all', query: query as Query<never, unknown>, params } }
}

/** Asks to run an insert, update or delete; the result is the number of affected rows. */
export function askChange<Params extends object>(query: Query<Params, unknown>, params: Params): Ask<number> {
  return { statement: { kind: 'change', query: query as Query<never, unknown>, params } }
}

/** Asks to insert rows, at least one; see `insertAll`. */
export function askInsert<Table extends keyof Tables>(table: Table, rows: readonly InsertRow<Table>[]): Ask<void> {
  return { statement: { kind: 'insert', table, rows } }
}

/** Asks to insert rows, at least one, and for their numbers; see `insertNumbered`. */
export function askNumbers<Table extends keyof Tables>(
  table: Table,
  rows: readonly InsertRow<Table>[],
  key: keyof Tables[Table] & string,
  each?: readonly (keyof Tables[Table] & string)[],
): Ask<number[]> {
  return { statement: { kind: 'number', table, rows, key, ...(each && { each }) } }
}

/**
 * Runs statements that do not need each other's results, in order; on PostgreSQL in one round trip. Each sees what the
 * earlier ones have changed, and what others have committed while they waited for a lock.
 * @param last `last`: these are the last statements, and the body does not refuse afterwards. PostgreSQL then commits in
 * the same round trip.
 */
export function* atOnce<const Results extends readonly unknown[]>(
  asks: { readonly [Index in keyof Results]: Ask<Results[Index]> },
  last?: 'last',
): Transaction<Results> {
  const statements = asks.map(({ statement }: Ask<unknown>) => statement)
  // Safe: a store answers the results of the statements, in their order.
  return (yield { kind: 'several', statements, isLast: last === 'last' }) as Results
}

/** Runs statements whose results are not needed, then `last`, as `atOnce` does. @returns the result of `last`. */
export function* atOnceBefore<Result>(before: readonly Ask<unknown>[], last: Ask<Result>): Transaction<Result> {
  const results = yield* atOnce<readonly unknown[]>([...before, last])
  // Safe: the results are in the order of the statements.
  return results.at(-1) as Result
}

/** All rows of a query. */
export function* all<Params extends object, Row>(query: Query<Params, Row>, params: Params): Transaction<Row[]> {
  // Safe: `all` returns rows of the query's own type.
  return (yield askAll(query, params).statement) as Row[]
}

/** The first row of a query, or `undefined`. */
export function* first<Params extends object, Row>(
  query: Query<Params, Row>,
  params: Params,
): Transaction<Row | undefined> {
  return (yield* all(query, params))[0]
}

/** The only row of a query that always returns one, such as a count. */
export function* only<Params extends object, Row>(query: Query<Params, Row>, params: Params): Transaction<Row> {
  const row = (yield* all(query, params))[0]
  if (row === undefined) throw new Error('a query that must return one row returned none')
  return row
}

/** Runs an insert, update or delete; returns the number of affected rows. */
export function* change<Params extends object>(query: Query<Params, unknown>, params: Params): Transaction<number> {
  return (yield askChange(query, params).statement) as number
}

/** Inserts rows, which must all have the same columns. Does nothing without rows. */
export function* insertAll<Table extends keyof Tables>(
  table: Table,
  rows: readonly InsertRow<Table>[],
): Transaction<void> {
  if (rows.length > 0) yield { kind: 'insert', table, rows }
}

/**
 * Inserts rows into a table that assigns `seq`, and returns these numbers in the order of the rows. `key` is a text column
 * with unique values. All rows must have the same columns.
 */
export function* insertNumbered<Table extends keyof Tables>(
  table: Table,
  rows: readonly InsertRow<Table>[],
  key: keyof Tables[Table] & string,
  each?: readonly (keyof Tables[Table] & string)[],
): Transaction<number[]> {
  return rows.length > 0 ? ((yield { kind: 'number', table, rows, key, ...(each && { each }) }) as number[]) : []
}

/**
 * As `insertNumbered`, but skips a row if the table already has one with the same values in the unique columns
 * `unlessTaken`. The number of a skipped row is `undefined`.
 */
export function* insertUnlessTaken<Table extends keyof Tables>(
  table: Table,
  rows: readonly InsertRow<Table>[],
  key: keyof Tables[Table] & string,
  unlessTaken: readonly (keyof Tables[Table] & string)[],
): Transaction<(number | undefined)[]> {
  if (rows.length === 0) return []
  return (yield { kind: 'number', table, rows, key, unlessTaken }) as (number | undefined)[]
}

/**
 * Changes rows, each to its own values, where `match` and `where` find them. Returns the values of the first column of
 * `match` of the changed rows, in any order. Different rows must match different rows of the table.
 */
export function* updateEach<Table extends keyof Tables>(
  table: Table,
  rows: readonly UpdateRow<Table>[],
  how: { readonly match: readonly (keyof Tables[Table] & string)[]; readonly where: Readonly<Record<string, string>> },
): Transaction<number[]> {
  return rows.length > 0 ? ((yield { kind: 'update', table, rows, ...how }) as number[]) : []
}

/** Reports damage without failing. An operation that cannot continue throws `store_damaged`, which is reported too. */
export function* reportDamage(damage: StoreDamage): Transaction<void> {
  yield { kind: 'damage', damage }
}

/** A row for `insertAll`. */
export type InsertRow<Table extends keyof Tables> = import('kysely').Insertable<Tables[Table]>

/** New values of a row for `updateEach`, and the columns that find it. */
export type UpdateRow<Table extends keyof Tables> = Partial<import('kysely').Selectable<Tables[Table]>>

/** Rolls the transaction back; the caller gets this error. */
export function refuse(error: HomeportError): never {
  throw error
}
