import { operationNamed } from '../operation.js'
import type { SqliteEngine } from './engine.js'
import { type Call, isBeyondTrust, type Outcome, toFailure } from './protocol.js'

/** Calls that run one after the other in an open transaction; `guarded` ones take back what they did when they throw. */
export interface Turn {
  readonly kind: 'guarded' | 'bare'
  readonly calls: readonly Call[]
}

/**
 * Runs writing operations in one transaction. Refusals are rare, so at first nothing guards the operations from each
 * other; when one throws, the transaction is rolled back and runs again with a savepoint around each operation, and
 * only the refused one takes back what it did. When the transaction as a whole fails, as it does on a full disk, each
 * is tried alone, so that a large one does not keep the small ones out.
 * @throws when the file or the disk can no longer be trusted.
 */
export function writeBatch(engine: SqliteEngine, calls: readonly Call[]): Outcome[] {
  if (calls.length === 1) return calls.map((call) => writeAlone(engine, call))
  return (
    together(engine, () => calls.map((call) => ({ value: runCall(engine, call) }))) ??
    together(engine, () => calls.map((call) => writeBeside(engine, call))) ??
    calls.map((call) => writeAlone(engine, call))
  )
}

/**
 * Runs large operations in a transaction that others join while it is open: `turns` is asked for the next one when the
 * one before is done. Large operations are not to be guarded: a savepoint around one would copy every page that it
 * changes.
 * @param ran is filled with the calls on the way; the outcomes are in its order.
 * @throws when the file or the disk can no longer be trusted.
 */
export function writeShared(engine: SqliteEngine, ran: Call[], turns: Iterable<Turn>): Outcome[] {
  return (
    together(engine, () => turnByTurn(engine, ran, turns)) ??
    together(engine, () => ran.map((call) => writeBeside(engine, call))) ??
    ran.map((call) => writeAlone(engine, call))
  )
}

function turnByTurn(engine: SqliteEngine, ran: Call[], turns: Iterable<Turn>): Outcome[] {
  const outcomes: Outcome[] = []
  for (const turn of turns) {
    ran.push(...turn.calls)
    const isGuarded = turn.kind === 'guarded'
    const inTurn = (call: Call) => (isGuarded ? writeBeside(engine, call) : { value: runCall(engine, call) })
    outcomes.push(...turn.calls.map(inTurn))
  }
  return outcomes
}

/** The outcomes of a batch in one transaction, or `undefined` when it was rolled back. */
function together(engine: SqliteEngine, work: () => Outcome[]): Outcome[] | undefined {
  try {
    return engine.inTransaction(work)
  } catch (error) {
    if (isBeyondTrust(error)) throw error
    return undefined
  }
}

/** Runs reading operations, each on a snapshot of its own. */
export function readBatch(engine: SqliteEngine, calls: readonly Call[]): Outcome[] {
  return calls.map((call) => outcomeOf(() => engine.inSnapshot(() => runCall(engine, call))))
}

function writeAlone(engine: SqliteEngine, call: Call): Outcome {
  return outcomeOf(() => engine.inTransaction(() => runCall(engine, call)))
}

function writeBeside(engine: SqliteEngine, call: Call): Outcome {
  return outcomeOf(
    () => engine.inSavepoint(() => runCall(engine, call)),
    () => engine.isTransactionLost,
  )
}

function runCall(engine: SqliteEngine, call: Call): unknown {
  return engine.run(operationNamed(call.name), call.args)
}

/** What became of one operation; errors that concern more than it are thrown on. */
function outcomeOf(work: () => unknown, concernsAll = (): boolean => false): Outcome {
  try {
    return { value: work() }
  } catch (error) {
    if (isBeyondTrust(error) || concernsAll()) throw error
    return { failure: toFailure(error) }
  }
}
