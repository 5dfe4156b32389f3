import { parentPort, workerData } from 'node:worker_threads'
import '../operations/index.js'
import { operationNamed } from '../operation.js'
import { SqliteEngine } from './engine.js'
import { type Call, type FromThread, type Outcome, type ThreadSettings, type ToThread, toFailure } from './protocol.js'

/**
 * A thread with one connection. The writer runs a whole batch of operations in one transaction, so that one wait for
 * the disk makes all of them durable; the reader runs each on a snapshot of its own.
 */
const port = parentPort
if (!port) throw new Error('the store thread must be started by the store')
const settings = workerData as ThreadSettings
const engine = new SqliteEngine(settings.path, settings.access)
if (settings.access === 'write') engine.migrate(Date.now())

const runOne = (call: Call): Outcome => ({ value: engine.run(operationNamed(call.name), call.args) })

function alone(call: Call, within: (work: () => Outcome) => Outcome): Outcome {
  try {
    return within(() => runOne(call))
  } catch (error) {
    return { failure: toFailure(error) }
  }
}

/**
 * All or nothing first, because refusals are rare. When one operation throws, nothing of the batch is kept and each
 * runs again in a transaction of its own: the refused one fails alone.
 */
function writeBatch(calls: readonly Call[]): Outcome[] {
  try {
    return engine.inTransaction(() => calls.map(runOne))
  } catch (error) {
    if (calls.length === 1) return [{ failure: toFailure(error) }]
    return calls.map((call) => alone(call, (work) => engine.inTransaction(work)))
  }
}

function readBatch(calls: readonly Call[]): Outcome[] {
  return calls.map((call) => alone(call, (work) => engine.inSnapshot(work)))
}

const say = (message: FromThread): void => port.postMessage(message)

port.on('message', (message: ToThread) => {
  if (message.kind === 'close') {
    engine.close()
    port.close()
    return
  }
  say({ kind: 'done', outcomes: settings.access === 'write' ? writeBatch(message.calls) : readBatch(message.calls) })
})
say({ kind: 'ready' })
