import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { unreachable } from '../../base/index.js'
import { isBackground, operationNamed } from '../operation.js'
import { readBatch, type Turn, writeBatch, writeShared } from './batch.js'
import { SqliteEngine } from './engine.js'
import { PacedCheckpoints } from './paced-checkpoints.js'
import {
  type Answer,
  type Call,
  crossable,
  type FromThread,
  isBeyondTrust,
  LARGEST_BATCH,
  type Outcome,
  type ThreadSettings,
  type ToThread,
  toFailure,
} from './protocol.js'

/**
 * A thread with one connection. While it works, calls pile up in its port; then it takes all of them together, and
 * the writer runs them in one transaction, so that one wait for the disk makes all of them durable: the busier the
 * store is, the more operations share a commit. Operations of the background come after all others that wait, and share
 * a transaction of their own until somebody comes, who joins it: nobody waits for more than one of them and one commit,
 * and they are not kept out forever. Where the disk is slow, they share the commit of those that wait, too.
 *
 * An error that is not the fault of an operation is thrown and ends the thread; the lane tells everybody.
 */
const port = parentPort
if (!port) throw new Error('the store thread must be started by the store')
const settings = workerData as ThreadSettings
/** So long operations of the background share a transaction while nobody else comes. */
const LONGEST_TURN_MS = 8
/** A commit that takes so long costs others as much as an operation of the background. */
const SLOW_COMMIT_MS = 4
let engine: SqliteEngine | undefined

/** The reader opens the file with its first call: when it starts, the writer may not have made the file yet. */
function open(): SqliteEngine {
  engine ??= new SqliteEngine(settings.path, settings.access, (damage) => say({ kind: 'damaged', damage }))
  return engine
}

function prepare(): FromThread {
  try {
    if (settings.access === 'write') open().migrate(Date.now())
    return { kind: 'ready' }
  } catch (error) {
    return { kind: 'failed', failure: toFailure(error) }
  }
}

const urgent: Call[] = []
const background: Call[] = []
/**
 * Whether the background may go on. Else it has been told to wait, and who told it is to hear that it does; it waits; or
 * what it waits for, the checkpoint of the log, comes next.
 */
let checkpointing: 'none' | 'asked' | 'awaited' | 'next' = 'none'
let checkpoints: PacedCheckpoints | undefined
let isClosing = false

/** Works until nothing is left to do, in turns of both kinds. */
function receive(first: ToThread): void {
  takeMessages(first)
  while (urgent.length > 0 || checkpointing === 'asked' || checkpointing === 'next' || isBackgroundDue()) {
    if (!isCommitShared()) run(urgent.splice(0))
    goOnCheckpointing()
    if (settings.access === 'read') run(background.splice(0, 1))
    else if (isBackgroundDue()) runShared()
    takeMessages(nextMessage())
  }
  if (isClosing) close()
}

/**
 * Whether an operation of the background goes into the commit of those who wait: on a slow disk, one more for each of
 * both would keep everybody longer.
 */
function isCommitShared(): boolean {
  return settings.access === 'write' && isBackgroundDue() && open().commitMs >= SLOW_COMMIT_MS
}

function isBackgroundDue(): boolean {
  return background.length > 0 && checkpointing === 'none'
}

/** Takes in what has come, up to about as many calls as go into one transaction. */
function takeMessages(first: ToThread | undefined): void {
  for (let message = first; message; message = urgent.length < LARGEST_BATCH ? nextMessage() : undefined) take(message)
}

function take(message: ToThread): void {
  switch (message.kind) {
    case 'run':
      for (const call of message.calls) (isBackground(call.name) ? background : urgent).push(call)
      return
    case 'hold':
      checkpointing = 'asked'
      return
    case 'checkpoint':
      checkpointing = 'next'
      return
    case 'lend':
      checkpoints?.close()
      checkpoints = new PacedCheckpoints(message.link)
      return
    case 'close':
      checkpointing = 'none'
      isClosing = true
      return
    default:
      unreachable(message)
  }
}

function goOnCheckpointing(): void {
  if (checkpointing === 'asked') {
    checkpointing = 'awaited'
    say({ kind: 'held' })
  } else if (checkpointing === 'next') checkpoint()
}

/** Copies what has come into the log since another connection has done so: little, as long as the background waits. */
function checkpoint(): void {
  checkpointing = 'none'
  try {
    open().checkpoint()
  } catch (error) {
    if (isBeyondTrust(error)) throw error
  }
}

function run(calls: readonly Call[]): void {
  if (calls.length === 0) return
  answerCalls(calls, settings.access === 'write' ? writeBatch(open(), calls) : readBatch(open(), calls))
}

function runShared(): void {
  const calls: Call[] = []
  // Where the disk is slow, many small checkpoints would cost more than a large one.
  if (open().commitMs < SLOW_COMMIT_MS) checkpoints?.beforeTransaction()
  answerCalls(calls, writeShared(open(), calls, turnsOfBackground()))
}

/**
 * Operations of the background one after the other, while nobody else comes, for a while. Whoever comes has waited for
 * the one that was running, and goes into the same commit instead of waiting for a second one. The commit itself comes
 * after the checkpoint that is under way, if there is one.
 */
function* turnsOfBackground(): Generator<Turn> {
  if (urgent.length > 0) yield { kind: 'guarded', calls: urgent.splice(0) }
  const until = performance.now() + LONGEST_TURN_MS
  do {
    yield { kind: 'bare', calls: background.splice(0, 1) }
    takeMessages(nextMessage())
  } while (isBackgroundDue() && urgent.length === 0 && performance.now() < until)
  if (urgent.length > 0) yield { kind: 'guarded', calls: urgent.splice(0) }
  checkpoints?.awaitEnd()
  takeMessages(nextMessage())
  if (urgent.length > 0) yield { kind: 'guarded', calls: urgent.splice(0) }
}

function answerCalls(calls: readonly Call[], outcomes: readonly Outcome[]): void {
  answer(calls.map(({ id, name }, index) => ({ id, outcome: packed(name, outcomes[index] ?? lost(name)) })))
}

function packed(name: string, outcome: Outcome): Outcome {
  if (!('value' in outcome)) return outcome
  const { crossing } = operationNamed(name)
  return crossing ? { value: crossing.pack(outcome.value) } : outcome
}

/** A batch has an outcome for each of its calls; if one had none, its caller must not wait forever. */
function lost(name: string): Outcome {
  return { failure: { message: `${name} got no outcome` } }
}

function nextMessage(): ToThread | undefined {
  return port ? receiveMessageOnPort(port)?.message : undefined
}

function answer(answers: readonly Answer[]): void {
  try {
    say({ kind: 'done', answers })
  } catch {
    say({ kind: 'done', answers: answers.map(({ id, outcome }) => ({ id, outcome: passable(outcome) })) })
  }
}

/** A result that cannot cross the thread boundary is a mistake in the operation; its neighbours must not suffer. */
function passable(outcome: Outcome): Outcome {
  try {
    return structuredClone(outcome)
  } catch (error) {
    return { failure: toFailure(error) }
  }
}

/** What ends the thread is told in words: see `crossable`. */
function orEnd(work: () => void): void {
  try {
    work()
  } catch (error) {
    throw crossable(error)
  }
}

function say(message: FromThread): void {
  port?.postMessage(message)
}

function close(): void {
  checkpoints?.close()
  engine?.close()
  port?.close()
}

const message = prepare()
say(message)
if (message.kind === 'ready') port.on('message', (first: ToThread) => orEnd(() => receive(first)))
else close()
