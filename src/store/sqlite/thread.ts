import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { unreachable } from '../../base/index.js'
import { isBackground, operationNamed } from '../operation.js'
import { readBatch, type Turn, writeBatch, writeShared } from './batch.js'
import { SqliteConnection } from './connection.js'
import { PacedCheckpoints } from './paced-checkpoints.js'
import {
  type Answer,
  type Call,
  type FromThread,
  isDiskBroken,
  MAX_BATCH_SIZE,
  type Outcome,
  type ThreadSettings,
  type ToThread,
  toFailure,
  toPlainError,
} from './protocol.js'

/**
 * A store thread with one connection. Calls that arrive while it works are taken together, and the writer runs them in one
 * transaction (group commit): the busier the store, the more operations share a wait for the disk.
 *
 * Background batches run after all other pending calls, in a transaction of their own that lasts until another call
 * arrives and joins it. So a call waits for at most one batch and one commit, and batches are never starved. On a slow
 * disk, batches share the commit of other calls.
 *
 * An error that no operation has caused ends the thread; the client then rejects all calls.
 */
const port = parentPort
if (!port) throw new Error('the store thread must be started by the store')
const settings = workerData as ThreadSettings
/** Longest transaction of background batches while no other call arrives. */
const MAX_TURN_MS = 8
/** From this commit time on, the disk is slow: a commit delays others as much as a background batch. */
const SLOW_COMMIT_MS = 4
let connection: SqliteConnection | undefined

/** Opens the file on first use: when the reader starts, the writer may not have created the file yet. */
function open(): SqliteConnection {
  connection ??= new SqliteConnection(settings.path, settings.access, (damage) => post({ kind: 'damaged', damage }))
  return connection
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
 * Whether background batches wait for a checkpoint. `none`: they run. `asked`: a `pause-batches` has arrived and must be
 * answered. `awaited`: they wait. `next`: the checkpoint is due now, then they continue.
 */
let checkpointing: 'none' | 'asked' | 'awaited' | 'next' = 'none'
let checkpoints: PacedCheckpoints | undefined
let isClosing = false

/** Runs calls and background batches until none is left. */
function receive(first: ToThread): void {
  takeMessages(first)
  while (urgent.length > 0 || checkpointing === 'asked' || checkpointing === 'next' || isBackgroundDue()) {
    if (!isCommitShared()) run(urgent.splice(0))
    continueCheckpoint()
    if (settings.access === 'read') run(background.splice(0, 1))
    else if (isBackgroundDue()) runShared()
    takeMessages(nextMessage())
  }
  if (isClosing) close()
}

/**
 * Whether a background batch shares the commit of other calls: on a slow disk, separate commits would delay everybody
 * longer.
 */
function isCommitShared(): boolean {
  return settings.access === 'write' && isBackgroundDue() && open().commitMs >= SLOW_COMMIT_MS
}

function isBackgroundDue(): boolean {
  return background.length > 0 && checkpointing === 'none'
}

/** Takes messages from the port, up to about as many calls as one transaction holds. */
function takeMessages(first: ToThread | undefined): void {
  for (let message = first; message; message = urgent.length < MAX_BATCH_SIZE ? nextMessage() : undefined) take(message)
}

function take(message: ToThread): void {
  switch (message.kind) {
    case 'run':
      for (const call of message.calls) (isBackground(call.name) ? background : urgent).push(call)
      return
    case 'pause-batches':
      checkpointing = 'asked'
      return
    case 'checkpoint':
      checkpointing = 'next'
      return
    case 'link':
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

function continueCheckpoint(): void {
  if (checkpointing === 'asked') {
    checkpointing = 'awaited'
    post({ kind: 'batches-paused' })
  } else if (checkpointing === 'next') checkpoint()
}

/** Copies what was added to the log since the last checkpoint: little, while background batches wait. */
function checkpoint(): void {
  checkpointing = 'none'
  try {
    open().checkpoint()
  } catch (error) {
    if (isDiskBroken(error)) throw error
  }
}

function run(calls: readonly Call[]): void {
  if (calls.length === 0) return
  answerCalls(calls, settings.access === 'write' ? writeBatch(open(), calls) : readBatch(open(), calls))
}

function runShared(): void {
  const calls: Call[] = []
  // On a slow disk, many small checkpoints cost more than a large one.
  if (open().commitMs < SLOW_COMMIT_MS) checkpoints?.beforeTransaction()
  answerCalls(calls, writeShared(open(), calls, backgroundTurns()))
}

/**
 * Yields background batches one by one, until another call arrives or the time is up. Calls that arrived during a batch
 * join the same commit instead of waiting for a second one. The commit waits for a running checkpoint.
 */
function* backgroundTurns(): Generator<Turn> {
  if (urgent.length > 0) yield { kind: 'guarded', calls: urgent.splice(0) }
  const until = performance.now() + MAX_TURN_MS
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
  answer(calls.map(({ id, name }, index) => ({ id, outcome: packed(name, outcomes[index] ?? missing(name)) })))
}

function packed(name: string, outcome: Outcome): Outcome {
  if (!('value' in outcome)) return outcome
  const { encoding } = operationNamed(name)
  return encoding ? { value: encoding.pack(outcome.value) } : outcome
}

/** Every call has an outcome; should one be missing, its caller must not wait forever. */
function missing(name: string): Outcome {
  return { failure: { message: `${name} got no outcome` } }
}

function nextMessage(): ToThread | undefined {
  return port ? receiveMessageOnPort(port)?.message : undefined
}

function answer(answers: readonly Answer[]): void {
  try {
    post({ kind: 'done', answers })
  } catch {
    post({ kind: 'done', answers: answers.map(({ id, outcome }) => ({ id, outcome: cloneable(outcome) })) })
  }
}

/** A result that cannot be cloned is a defect of its operation and must not affect other calls. */
function cloneable(outcome: Outcome): Outcome {
  try {
    return structuredClone(outcome)
  } catch (error) {
    return { failure: toFailure(error) }
  }
}

/** Runs `work`; an error ends the thread with a plain error: see `toPlainError`. */
function endOnError(work: () => void): void {
  try {
    work()
  } catch (error) {
    throw toPlainError(error)
  }
}

function post(message: FromThread): void {
  port?.postMessage(message)
}

function close(): void {
  checkpoints?.close()
  connection?.close()
  port?.close()
}

const message = prepare()
post(message)
if (message.kind === 'ready') port.on('message', (first: ToThread) => endOnError(() => receive(first)))
else close()
