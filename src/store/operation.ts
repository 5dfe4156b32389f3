import type { HomeportError } from '../contract/errors/errors.js'
import type { StoreDamage } from './damage.js'
import type { Query } from './query.js'
import type { Tables } from './schema/index.js'

/**
 * An operation is one transaction with a name: a generator that yields statements and gets their results. Because it
 * never waits for anything but the store, SQLite runs it synchronously beside many others in one commit, and
 * PostgreSQL runs the same text over a connection. It may run more than once (a commit is tried again when another
 * transaction was in the way), so it must depend on nothing but its arguments and the store: the time is an argument.
 */

/** A statement that an operation asks the store to run. */
export type Statement =
  | { readonly kind: 'all'; readonly query: Query<never, unknown>; readonly params: object }
  | { readonly kind: 'change'; readonly query: Query<never, unknown>; readonly params: object }
  | { readonly kind: 'insert'; readonly table: keyof Tables; readonly rows: readonly object[] }
  | {
      readonly kind: 'number'
      readonly table: keyof Tables
      readonly rows: readonly object[]
      /** A column that tells the rows apart. */
      readonly key: string
    }
  | { readonly kind: 'damage'; readonly damage: StoreDamage }

/** The body of a transaction: yields statements, returns its result. */
export type Transaction<Result> = Generator<Statement, Result, unknown>

/** A named transaction. `Args` and `Result` must survive a structured clone. */
export interface Operation<Args, Result> {
  readonly name: string
  /** `read` operations see one snapshot and change nothing; `write` operations are durable when they resolve. */
  readonly access: 'read' | 'write'
  readonly body: (args: Args) => Transaction<Result>
  /**
   * Nobody waits for it: it may be held back this long, so that it shares the commit of a write that somebody waits for.
   * Absent: it goes at once.
   */
  readonly patienceMs?: number
  /**
   * `background`: large work that is cut into pieces. Where operations take turns, all that wait beside it go first, and
   * then pieces until somebody comes; so others wait for one piece at most, and the pieces may be asked for ahead.
   * Absent: it is small.
   */
  readonly turn?: 'background'
  /** How calls that are asked for at the same time become one. Absent: each goes by itself. */
  readonly together?: Together<Args, Result>
  /** In which form a large result comes over from the thread of the store. Absent: as it is. */
  readonly crossing?: Crossing<Result>
}

/** Another form of a result, which costs less to copy. */
export interface Crossing<Result> {
  pack(result: Result): unknown
  unpack(packed: unknown): Result
}

/**
 * Makes one call of several of an operation, for which more is done than for their parts: crossing to the thread of the
 * store costs more by the call than by the row. When the one call fails, the others are made after all.
 */
export interface Together<Args, Result> {
  /** What is called instead. */
  readonly operation: Pick<AnyOperation, 'name'>
  readonly join: (all: readonly Args[]) => unknown
  /** The results of the calls, in order, from the result of the one call. */
  readonly split: (result: unknown, all: readonly Args[]) => readonly Result[]
}

/** An operation whose argument and result types are known only to its caller. */
export type AnyOperation = Operation<never, unknown>

const operations = new Map<string, AnyOperation>()

function register<Args, Result>(operation: Operation<Args, Result>): Operation<Args, Result> {
  if (operations.has(operation.name)) throw new Error(`two store operations are named ${operation.name}`)
  operations.set(operation.name, operation)
  return operation
}

/** Declares a reading operation. Names are `room.verb`, unique in the store. */
export function read<Args, Result>(
  name: string,
  body: (args: Args) => Transaction<Result>,
  how: Pick<Operation<Args, Result>, 'turn' | 'crossing'> = {},
): Operation<Args, Result> {
  return register({ name, access: 'read', body, ...how })
}

/** Declares a writing operation. Names are `room.verb`, unique in the store. */
export function write<Args, Result>(
  name: string,
  body: (args: Args) => Transaction<Result>,
  how: Pick<Operation<Args, Result>, 'patienceMs' | 'turn' | 'together'> = {},
): Operation<Args, Result> {
  return register({ name, access: 'write', body, ...how })
}

/** Says how calls of one operation become one of another. */
export function together<Args, Result, Joined, All>(
  operation: Operation<Joined, All>,
  how: {
    readonly join: (all: readonly Args[]) => Joined
    readonly split: (result: All, all: readonly Args[]) => readonly Result[]
  },
): Together<Args, Result> {
  // The result is that of this very operation.
  return { operation, join: how.join, split: (result, all) => how.split(result as All, all) }
}

/** Says in which form a result crosses. */
export function crossing<Result, Packed>(
  pack: (result: Result) => Packed,
  unpack: (packed: Packed) => Result,
): Crossing<Result> {
  // What comes over is what was packed.
  return { pack, unpack: (packed) => unpack(packed as Packed) }
}

/** Finds an operation by name, as the other side of a thread boundary has to. */
export function operationNamed(name: string): AnyOperation {
  const operation = operations.get(name)
  if (!operation) throw new Error(`no store operation is named ${name}`)
  return operation
}

/** Whether an operation lets others go first; one that nobody has declared does not. */
export function isBackground(name: string): boolean {
  return operations.get(name)?.turn === 'background'
}

/** All rows of a query. */
export function* all<Params extends object, Row>(query: Query<Params, Row>, params: Params): Transaction<Row[]> {
  // The runner answers `all` with the rows that the query's own type describes.
  return (yield { kind: 'all', query: query as Query<never, unknown>, params }) as Row[]
}

/** The first row of a query, or `undefined`. */
export function* first<Params extends object, Row>(
  query: Query<Params, Row>,
  params: Params,
): Transaction<Row | undefined> {
  return (yield* all(query, params))[0]
}

/** The only row of a query that always has one, such as a count or an insert with `returning`. */
export function* only<Params extends object, Row>(query: Query<Params, Row>, params: Params): Transaction<Row> {
  const row = (yield* all(query, params))[0]
  if (row === undefined) throw new Error('a query that always has one row had none')
  return row
}

/** Runs an insert, update or delete; returns how many rows it touched. */
export function* change<Params extends object>(query: Query<Params, unknown>, params: Params): Transaction<number> {
  return (yield { kind: 'change', query: query as Query<never, unknown>, params }) as number
}

/** Inserts rows as they are. All rows must have the same columns. No rows is no statement. */
export function* insertAll<Table extends keyof Tables>(
  table: Table,
  rows: readonly InsertRow<Table>[],
): Transaction<void> {
  if (rows.length > 0) yield { kind: 'insert', table, rows }
}

/**
 * Inserts rows into a table that numbers them by itself, in its column `seq`. Answers their numbers, in order. `key` is a
 * column of texts that tells the rows apart. All rows must have the same columns.
 */
export function* insertNumbered<Table extends keyof Tables>(
  table: Table,
  rows: readonly InsertRow<Table>[],
  key: keyof Tables[Table] & string,
): Transaction<number[]> {
  return rows.length > 0 ? ((yield { kind: 'number', table, rows, key }) as number[]) : []
}

/** Tells of damage that the operation goes on around. One that cannot throws `store_damaged`, which is told by itself. */
export function* tellDamage(damage: StoreDamage): Transaction<void> {
  yield { kind: 'damage', damage }
}

/** A row as `insertAll` takes it. */
export type InsertRow<Table extends keyof Tables> = import('kysely').Insertable<Tables[Table]>

/** Refuses a transaction: nothing of it is kept, and the caller gets this error of the catalogue. */
export function refuse(error: HomeportError): never {
  throw error
}
