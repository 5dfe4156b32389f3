import { operationNamed } from '../operation.js'
import type { SqliteConnection } from './connection.js'
import { type Call, isDiskBroken, isLocked, type Outcome, toFailure } from './protocol.js'

/** Calls that run one after the other in an open transaction; each `guarded` call is rolled back alone if it throws. */
export interface Turn {
  readonly kind: 'guarded' | 'bare'
  readonly calls: readonly Call[]
}

/**
 * Runs writes in one transaction (group commit), in up to three attempts. Refusals are rare, so the first attempt has no
 * savepoints. If an operation throws, the transaction is rolled back and repeated with a savepoint around each operation,
 * so that only the refused one is rolled back. If the transaction as a whole fails, as on a full disk, each operation runs
 * in its own transaction, so that a large one does not keep the small ones out.
 * @throws when the disk can no longer be trusted.
 */
export function writeBatch(connection: SqliteConnection, calls: readonly Call[]): Outcome[] {
  if (calls.length === 1) return calls.map((call) => writeAlone(connection, call))
  return (
    inOneTransaction(connection, calls, () => calls.map((call) => ({ value: runCall(connection, call) }))) ??
    inOneTransaction(connection, calls, () => calls.map((call) => writeGuarded(connection, call))) ??
    calls.map((call) => writeAlone(connection, call))
  )
}

/**
 * Runs background batches in a transaction that other calls join while it is open: after each turn, `turns` yields the
 * next one. Do not guard batches: a savepoint would copy every page that they change.
 * @param ran receives the calls in the order of running; the outcomes have the same order.
 * @throws when the disk can no longer be trusted.
 */
export function writeShared(connection: SqliteConnection, ran: Call[], turns: Iterable<Turn>): Outcome[] {
  return (
    inOneTransaction(connection, ran, () => runTurns(connection, ran, turns)) ??
    inOneTransaction(connection, ran, () => ran.map((call) => writeGuarded(connection, call))) ??
    ran.map((call) => writeAlone(connection, call))
  )
}

function runTurns(connection: SqliteConnection, ran: Call[], turns: Iterable<Turn>): Outcome[] {
  const outcomes: Outcome[] = []
  for (const turn of turns) {
    ran.push(...turn.calls)
    const isGuarded = turn.kind === 'guarded'
    const runOne = (call: Call) => (isGuarded ? writeGuarded(connection, call) : { value: runCall(connection, call) })
    outcomes.push(...turn.calls.map(runOne))
  }
  return outcomes
}

/** The outcomes of one transaction, or `undefined` if it was rolled back. If the file is locked, all calls fail. */
function inOneTransaction(
  connection: SqliteConnection,
  calls: readonly Call[],
  work: () => Outcome[],
): Outcome[] | undefined {
  try {
    return connection.inTransaction(work)
  } catch (error) {
    if (isDiskBroken(error)) throw error
    return isLocked(error) ? calls.map(() => ({ failure: toFailure(error) })) : undefined
  }
}

/** Runs reads, each on its own snapshot. */
export function readBatch(connection: SqliteConnection, calls: readonly Call[]): Outcome[] {
  return calls.map((call) => outcomeOf(() => connection.inSnapshot(() => runCall(connection, call))))
}

function writeAlone(connection: SqliteConnection, call: Call): Outcome {
  return outcomeOf(() => connection.inTransaction(() => runCall(connection, call)))
}

function writeGuarded(connection: SqliteConnection, call: Call): Outcome {
  return outcomeOf(
    () => connection.inSavepoint(() => runCall(connection, call)),
    () => connection.isTransactionLost,
  )
}

function runCall(connection: SqliteConnection, call: Call): unknown {
  return connection.run(operationNamed(call.name), call.args)
}

/** The outcome of one operation; rethrows errors that affect other operations too. */
function outcomeOf(work: () => unknown, affectsAll = (): boolean => false): Outcome {
  try {
    return { value: work() }
  } catch (error) {
    if (isDiskBroken(error) || affectsAll()) throw error
    return { failure: toFailure(error) }
  }
}
