import type { Transaction } from './statement.js'

/**
 * An operation is a named transaction: a generator that yields statements and receives their results. It waits for nothing
 * but the store, so SQLite runs it synchronously, with many others in one commit, and PostgreSQL runs it over a connection.
 * It may run more than once, because a transaction is retried after a conflict. So it must depend only on its arguments
 * and the store; the current time is an argument.
 */

/** A named transaction. `Args` and `Result` must survive a structured clone. */
export interface Operation<Args, Result> {
  readonly name: string
  /** A `read` sees one snapshot and changes nothing; a `write` is durable when it resolves. */
  readonly access: 'read' | 'write'
  readonly body: (args: Args) => Transaction<Result>
  /**
   * For a write whose caller does not wait: the most that it may be delayed to share the commit of another write. Default:
   * no delay.
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
  /** A cheaper operation for the usual case on PostgreSQL. Default: none. */
  readonly shortcut?: Shortcut<Args, Result>
  /** A cheaper operation for the usual case on SQLite. Default: none. */
  readonly compact?: CompactCall<Args, Result>
  /** Delayed calls of others that PostgreSQL adds to a call of this operation. Default: none. */
  readonly carrying?: Carrying
  /** Encoding in which the store thread sends a large result. Default: a structured clone. */
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
 * on its own. The transaction must make these calls last, and must not wait for the locks that they take. If it skips some
 * of them or fails, those calls are made on their own afterwards, so a call may be made twice.
 */
export interface Carrying {
  /** The operation whose calls are carried; it must have `maxDelayMs`, and return nothing. */
  readonly operation: Pick<AnyOperation, 'name'>
  /** The most calls in one transaction. */
  readonly most: number
  /** Adds the calls to the arguments of this operation. */
  readonly load: (args: never, calls: readonly unknown[]) => unknown
  /** Reads from the result which of the calls the transaction has made. */
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
  /** For PostgreSQL, if `join` packs the calls for another thread, which PostgreSQL does not need. Default: as on SQLite. */
  readonly here?: { readonly operation: Pick<AnyOperation, 'name'>; readonly join: (all: readonly Args[]) => unknown }
  /** Splits the result of the combined call into those of the calls, in order. */
  readonly split: (result: unknown, all: readonly Args[]) => readonly Result[]
  /** Bytes of the contents of a call. PostgreSQL combines calls up to a limit of bytes. Default: 0. */
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
   * Name of the group of a call. PostgreSQL combines only calls of the same group, because when one call is refused, the
   * others of its transaction are repeated. Default: all calls together.
   */
  readonly groupOf?: ((args: Args) => string) | undefined
  /** Calls that PostgreSQL does not combine, because they are refused often. Default: none. */
  readonly except?: ((args: Args) => boolean) | undefined
  /** `postgres`: SQLite does not combine the calls. They share its commits anyway, and cost less one by one. */
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
