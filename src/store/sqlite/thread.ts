import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { readBatch, writeBatch } from './batch.js'
import { SqliteEngine } from './engine.js'
import {
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
 * store is, the more operations share a commit.
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

async function prepare(): Promise<FromThread> {
  try {
    for (const module of settings.modules) await import(module)
    if (settings.access === 'write') open().migrate(Date.now())
    return { kind: 'ready' }
  } catch (error) {
    return { kind: 'failed', failure: toFailure(error) }
  }
}

function receive(first: ToThread): void {
  const calls: Call[] = []
  let message: ToThread | undefined = first
  while (message?.kind === 'run') {
    calls.push(...message.calls)
    message = calls.length < LARGEST_BATCH ? nextMessage() : undefined
  }
  if (calls.length > 0) answer(settings.access === 'write' ? writeBatch(open(), calls) : readBatch(open(), calls))
  if (message?.kind === 'close') close()
}

function nextMessage(): ToThread | undefined {
  return port ? receiveMessageOnPort(port)?.message : undefined
}

function answer(outcomes: readonly Outcome[]): void {
  try {
    say({ kind: 'done', outcomes })
  } catch {
    say({ kind: 'done', outcomes: outcomes.map(passable) })
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

void prepare().then((message) => {
  say(message)
  if (message.kind === 'ready') port.on('message', receive)
  else close()
})
