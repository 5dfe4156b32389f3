import type { HomeportError } from '../contract/errors/errors.js'
import type { StoreDamage } from './damage.js'
import type { Query } from './query.js'
import type { Tables } from './schema/index.js'

/**
 * An operation is a named transaction: a generator that yields statements and receives their results. It waits for nothing
 * but the store, so SQLite runs it synchronously, with many others in one commit, and PostgreSQL runs it over a connection.
 * It may run more than once, because a transaction is retried after a conflict. So it must depend only on its arguments
 * and the store; the current time is an argument.
 */

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
    }
  | { readonly kind: 'damage'; readonly damage: StoreDamage }

/** The body of a transaction: yields statements, returns its result. */
export type Transaction<Result> = Generator<Statement, Result, unknown>

/** A named transaction. `Args` and `Result` must survive a structured clone. */
export interface Operation<Args, Result> {
  readonly name: string
  /** A `read` sees one snapshot and changes nothing; a `write` is durable when it resolves. */
  readonly access: 'read' | 'write'
  readonly body: (args: Args) => Transaction<Result>
  /**
   * For a write that nobody waits for: it may be delayed this long, to share the commit of another write. Default: no
   * delay.
   */
  readonly maxDelayMs?: number
  /**
   * `background`: one batch of a large job. On SQLite, all other pending operations run first; then batches run until
   * another operation arrives. So others wait for at most one batch, and a job may enqueue several batches in advance.
   * Default: a small operation.
   */
  readonly turn?: 'background'
  /** How calls of the same tick are combined into one. Default: they are not. */
  readonly combining?: CallCombining<Args, Result>
  /** Encoding of a large result for the way from the store thread. Default: a structured clone. */
  readonly encoding?: ResultEncoding<Result>
}

/** An encoding of a result that is cheaper to copy between threads. */
export interface ResultEncoding<Result> {
  pack(result: Result): unknown
  unpack(packed: unknown): Result
}

/**
 * Combines several calls of an operation into one call of another operation, because sending calls to the store thread
 * costs more per call than per row. If the combined call fails, the calls are made one by one.
 */
export interface CallCombining<Args, Result> {
  /** The operation that is called instead. */
  readonly operation: Pick<AnyOperation, 'name'>
  readonly join: (all: readonly Args[]) => unknown
  /** Splits the result of the combined call into those of the calls, in order. */
  readonly split: (result: unknown, all: readonly Args[]) => readonly Result[]
}

/** An operation whose types of arguments and result only the caller knows. */
export type AnyOperation = Operation<never, unknown>

const operations = new Map<string, AnyOperation>()

function register<Args, Result>(operation: Operation<Args, Result>): Operation<Args, Result> {
  if (operations.has(operation.name)) throw new Error(`two store operations are named ${operation.name}`)
  operations.set(operation.name, operation)
  return operation
}

/** Declares an operation that reads. Names are `subject.verb` and unique. */
export function read<Args, Result>(
  name: string,
  body: (args: Args) => Transaction<Result>,
  how: Pick<Operation<Args, Result>, 'turn' | 'encoding'> = {},
): Operation<Args, Result> {
  return register({ name, access: 'read', body, ...how })
}

/** Declares an operation that writes. Names are `subject.verb` and unique. */
export function write<Args, Result>(
  name: string,
  body: (args: Args) => Transaction<Result>,
  how: Pick<Operation<Args, Result>, 'maxDelayMs' | 'turn' | 'combining'> = {},
): Operation<Args, Result> {
  return register({ name, access: 'write', body, ...how })
}

/** Declares how calls are combined; see `CallCombining`. */
export function combineCalls<Args, Result, Joined, All>(
  operation: Operation<Joined, All>,
  how: {
    readonly join: (all: readonly Args[]) => Joined
    readonly split: (result: All, all: readonly Args[]) => readonly Result[]
  },
): CallCombining<Args, Result> {
  // Safe: `split` receives the result of this operation.
  return { operation, join: how.join, split: (result, all) => how.split(result as All, all) }
}

/** Declares the encoding of a result; see `ResultEncoding`. */
export function encodeResult<Result, Packed>(
  pack: (result: Result) => Packed,
  unpack: (packed: Packed) => Result,
): ResultEncoding<Result> {
  // Safe: `unpack` receives what `pack` returned.
  return { pack, unpack: (packed) => unpack(packed as Packed) }
}

/** Finds an operation by name: store threads receive only names. */
export function operationNamed(name: string): AnyOperation {
  const operation = operations.get(name)
  if (!operation) throw new Error(`no store operation is named ${name}`)
  return operation
}

/** Whether an operation is a background batch; false for unknown names. */
export function isBackground(name: string): boolean {
  return operations.get(name)?.turn === 'background'
}

/** All rows of a query. */
export function* all<Params extends object, Row>(query: Query<Params, Row>, params: Params): Transaction<Row[]> {
  // Safe: `all` returns rows of the query's own type.
  return (yield { kind: 'all', query: query as Query<never, unknown>, params }) as Row[]
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
  return (yield { kind: 'change', query: query as Query<never, unknown>, params }) as number
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
): Transaction<number[]> {
  return rows.length > 0 ? ((yield { kind: 'number', table, rows, key }) as number[]) : []
}

/** Reports damage without failing. An operation that cannot continue throws `store_damaged`, which is reported too. */
export function* reportDamage(damage: StoreDamage): Transaction<void> {
  yield { kind: 'damage', damage }
}

/** A row for `insertAll`. */
export type InsertRow<Table extends keyof Tables> = import('kysely').Insertable<Tables[Table]>

/** Rolls the transaction back; the caller gets this error. */
export function refuse(error: HomeportError): never {
  throw error
}
