import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import '../operations/index.js'
import { isBackground, operationNamed } from '../operation.js'
import { readBatch, writeBatch } from './batch.js'
import { SqliteEngine } from './engine.js'
import {
  type Answer,
  type Call,
  type FromThread,
  LARGEST_BATCH,
  type Outcome,
  type ThreadSettings,
  type ToThread,
  toFailure,
} from './protocol.js'

/**
 * A thread with one connection. While it works, calls pile up in its port; then it takes all of them together, and
 * the writer runs them in one transaction, so that one wait for the disk makes all of them durable: the busier the
 * store is, the more operations share a commit. Operations of the background come one by one, each after all others
 * that wait: nobody waits for more than one of them, and they are not kept out for ever.
 *
 * An error that is not the fault of an operation is thrown and ends the thread; the lane tells everybody.
 */
const port = parentPort
if (!port) throw new Error('the store thread must be started by the store')
const settings = workerData as ThreadSettings
let engine: SqliteEngine | undefined

/** The reader opens the file with its first call: when it starts, the writer may not have made the file yet. */
function open(): SqliteEngine {
  engine ??= new SqliteEngine(settings.path, settings.access)
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

/** Works until nothing is left to do, in turns of both kinds. */
function receive(first: ToThread): void {
  let isClosing = takeCalls(first)
  while (urgent.length > 0 || background.length > 0) {
    run(urgent.splice(0))
    run(background.splice(0, 1))
    isClosing ||= takeCalls(nextMessage())
  }
  if (isClosing) close()
}

/** Sorts what has come in; answers whether it ends with the order to close. */
function takeCalls(first: ToThread | undefined): boolean {
  let message = first
  while (message?.kind === 'run') {
    for (const call of message.calls) (isBackground(call.name) ? background : urgent).push(call)
    message = urgent.length < LARGEST_BATCH ? nextMessage() : undefined
  }
  return message?.kind === 'close'
}

function run(calls: readonly Call[]): void {
  if (calls.length === 0) return
  const outcomes = settings.access === 'write' ? writeBatch(open(), calls) : readBatch(open(), calls)
  answer(calls.map(({ id, name }, index) => ({ id, outcome: packed(name, outcomes[index] ?? lost(name)) })))
}

function packed(name: string, outcome: Outcome): Outcome {
  if (!('value' in outcome)) return outcome
  const { crossing } = operationNamed(name)
  return crossing ? { value: crossing.pack(outcome.value) } : outcome
}

/** A batch has an outcome for each of its calls; if one had none, its caller must not wait for ever. */
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

function say(message: FromThread): void {
  port?.postMessage(message)
}

function close(): void {
  engine?.close()
  port?.close()
}

const message = prepare()
say(message)
if (message.kind === 'ready') port.on('message', receive)
else close()
