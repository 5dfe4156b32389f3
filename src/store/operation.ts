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
      /** Nothing follows in the transaction, and the body refuses nothing any more. */
      readonly isLast: boolean
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
  /**
   * Whether a call yields exactly one statement and takes no locks that others hold for long. PostgreSQL then needs no
   * BEGIN and COMMIT, and combines such calls apart from others, so that they never wait for a lock. Default: no.
   */
  readonly isSingle?: (args: Args) => boolean
  /** How calls of the same tick are combined into one. Default: they are not. */
  readonly combining?: CallCombining<Args, Result>
  /** A cheaper way for PostgreSQL to do the usual. Default: none. */
  readonly shortcut?: Shortcut<Args, Result>
  /** A cheaper way for SQLite to do the usual. Default: none. */
  readonly compact?: CompactCall<Args, Result>
  /** Delayed calls of others that PostgreSQL adds to a call of this operation. Default: none. */
  readonly carrying?: Carrying
  /** Encoding of a large result for the way from the store thread. Default: a structured clone. */
  readonly encoding?: ResultEncoding<Result>
}

/**
 * Another operation that PostgreSQL tries first for a call that is not combined, because it needs fewer round trips. It
 * answers `undefined` where the usual case does not apply; then it has changed nothing, and the operation itself runs.
 */
export interface Shortcut<Args, Result> {
  readonly operation: Operation<Args, Result | undefined>
  /** Whether it is worth a try. */
  readonly fits: (args: Args) => boolean
}

/**
 * Another operation that SQLite tries first, because objects with member names cost more on their way between threads than
 * the statements of a small transaction: its arguments and result are short lists of values. It answers `undefined` where the
 * usual case does not apply; then it has changed nothing, and the operation itself runs.
 */
export interface CompactCall<Args, Result> {
  readonly operation: AnyOperation
  /** Its arguments; `undefined` if it is not worth a try. */
  readonly pack: (args: Args) => unknown
  /** The result of the operation itself. */
  readonly unpack: (packed: never, args: Args) => Result
}

/**
 * Calls of a delayed operation that share the transaction of this one on PostgreSQL, where each commit waits for the disk
 * on its own. The transaction must make them last and wait for no lock of theirs. What it has not made, or if it fails, is
 * called on its own afterwards, so a call may be made twice.
 */
export interface Carrying {
  /** The operation whose calls are carried; it must have `maxDelayMs`, and answer nothing. */
  readonly operation: Pick<AnyOperation, 'name'>
  /** The most calls in one transaction. */
  readonly most: number
  /** Adds the calls to the arguments of this operation. */
  readonly load: (args: never, calls: readonly unknown[]) => unknown
  /** Which of the calls the transaction has made, by the result. */
  readonly made: (result: never, calls: readonly unknown[]) => readonly boolean[]
}

/** An encoding of a result that is cheaper to copy between threads. */
export interface ResultEncoding<Result> {
  pack(result: Result): unknown
  unpack(packed: unknown): Result
}

/**
 * Combines several calls of an operation into one call of another operation, because a call costs more than a row: on
 * SQLite on its way to the store thread, on PostgreSQL by its commit. If the combined call fails, the calls are made one
 * by one, unless its outcome is unknown.
 */
export interface CallCombining<Args, Result> {
  /** The operation that is called instead. */
  readonly operation: Pick<AnyOperation, 'name'>
  readonly join: (all: readonly Args[]) => unknown
  /** The same for PostgreSQL, if `join` packs the calls for another thread: PostgreSQL is called from this one. */
  readonly here?: { readonly operation: Pick<AnyOperation, 'name'>; readonly join: (all: readonly Args[]) => unknown }
  /** Splits the result of the combined call into those of the calls, in order. */
  readonly split: (result: unknown, all: readonly Args[]) => readonly Result[]
  /** Bytes of the contents of a call. PostgreSQL takes a limited number at once. Default: few. */
  readonly bytesOf?: ((args: Args) => number) | undefined
  /**
   * Rows that a call stores. On PostgreSQL, calls of many rows are not combined into ever larger ones: one is encoded
   * while others are stored. Default: one.
   */
  readonly rowsOf?: ((args: Args) => number) | undefined
  /**
   * Names of what a call reads in order to change it. Two calls with a common name never share a transaction on PostgreSQL,
   * because the later one must see what the earlier one changed. Default: none.
   */
  readonly keysOf?: ((args: Args) => readonly string[]) | undefined
  /**
   * Whose call it is: PostgreSQL combines only calls of the same name, because a refused call has the others of its
   * transaction made again. Default: all calls together.
   */
  readonly groupOf?: ((args: Args) => string) | undefined
  /** Calls that PostgreSQL does not combine, because they are refused often. Default: none. */
  readonly except?: ((args: Args) => boolean) | undefined
  /** SQLite does not combine the calls: they share its commits anyway, and alone they cost less. */
  readonly only?: 'postgres' | undefined
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
  how: Pick<Operation<Args, Result>, 'turn' | 'encoding' | 'isSingle'> = {},
): Operation<Args, Result> {
  return register({ name, access: 'read', body, ...how })
}

/** Declares an operation that writes. Names are `subject.verb` and unique. */
export function write<Args, Result>(
  name: string,
  body: (args: Args) => Transaction<Result>,
  how: Pick<
    Operation<Args, Result>,
    'maxDelayMs' | 'turn' | 'combining' | 'isSingle' | 'shortcut' | 'compact' | 'carrying'
  > = {},
): Operation<Args, Result> {
  return register({ name, access: 'write', body, ...how })
}

/** Declares how calls are combined; see `CallCombining`. */
export function combineCalls<Args, Result, Joined, All>(
  operation: Operation<Joined, All>,
  how: {
    readonly join: (all: readonly Args[]) => Joined
    readonly split: (result: All, all: readonly Args[]) => readonly Result[]
  } & Pick<CallCombining<Args, Result>, 'here' | 'bytesOf' | 'rowsOf' | 'keysOf' | 'groupOf' | 'except' | 'only'>,
): CallCombining<Args, Result> {
  // Safe: `split` receives the result of this operation.
  const split = (result: unknown, all: readonly Args[]) => how.split(result as All, all)
  return { ...how, operation, split }
}

/** Declares a cheaper call; see `CompactCall`. */
export function compactCall<Args, Result, Packed, Short>(
  operation: Operation<Packed, Short | undefined>,
  how: {
    readonly pack: (args: Args) => Packed | undefined
    readonly unpack: (short: Short, args: Args) => Result
  },
): CompactCall<Args, Result> {
  // Safe: the store calls the operation with what `pack` has made, and unpacks what it answers.
  return { ...how, operation } as CompactCall<Args, Result>
}

/** Declares which calls are carried; see `Carrying`. */
export function carryCalls<Args, Result, Carried>(
  operation: Operation<Carried, void>,
  how: {
    readonly most: number
    readonly load: (args: Args, calls: readonly Carried[]) => Args
    readonly made: (result: Result, calls: readonly Carried[]) => readonly boolean[]
  },
): Carrying {
  // Safe: the store takes the calls of this operation.
  return { ...how, operation } as Carrying
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
 * @param last `last`: nothing follows in the transaction, and the body refuses nothing any more; then PostgreSQL commits
 * in the same round trip.
 */
export function* atOnce<const Results extends readonly unknown[]>(
  asks: { readonly [Index in keyof Results]: Ask<Results[Index]> },
  last?: 'last',
): Transaction<Results> {
  const statements = asks.map(({ statement }: Ask<unknown>) => statement)
  // Safe: a store answers the results of the statements, in their order.
  return (yield { kind: 'several', statements, isLast: last === 'last' }) as Results
}

/** The same for statements whose results nobody needs, and one after them. @returns the result of that one. */
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
 * The same, except that rows are left out if a unique constraint over the columns `unlessTaken` has such a row already;
 * their number is `undefined`.
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
