import cluster, { type Worker } from 'node:cluster'
import { type Clock, pause } from '../../base/index.js'
import { PROCESS_VARIABLE } from '../../config/index.js'
import { DONE, type ExitCode, FAILED } from '../exit-codes.js'
import type { Io } from '../io.js'
import type { StopRequests } from '../serve.js'
import { SERVING } from './parent.js'

/** A server process to run: the arguments of `homeport`, and environment variables besides those of this process. */
export interface ProcessSpec {
  /** Name of the process in messages. */
  readonly name: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Settings and collaborators of `runProcesses`. */
export interface ProcessesOptions {
  readonly specs: readonly ProcessSpec[]
  readonly io: Io
  readonly clock: Clock
  readonly stopRequests: StopRequests
  /** How long processes may take to end before they are killed, milliseconds. */
  readonly stopDeadlineMs: number
  /** Called once, when all processes serve. */
  readonly onServing: () => void
}

/** Delay before a process that ended by itself is restarted, milliseconds. It grows with each further end. */
const RESTART_AFTER_MS = { first: 500, most: 30_000 }
/** A process that has served for this long counts as healthy again. */
const HEALTHY_AFTER_MS = 60_000

/**
 * Runs several server processes, and restarts each one that ends by itself. They share their listening ports: this process
 * accepts connections and hands them to the servers in turn. The first server starts alone, because it prepares the store.
 */
export async function runProcesses(options: ProcessesOptions): Promise<ExitCode> {
  // When all processes have ended, only this timer keeps this process alive until it restarts them.
  const awake = setInterval(() => undefined, RESTART_AFTER_MS.most)
  try {
    return await untilStopped(options)
  } finally {
    clearInterval(awake)
  }
}

async function untilStopped(options: ProcessesOptions): Promise<ExitCode> {
  const stopping = options.stopRequests.next()
  const all = options.specs.map((spec, index) => new ServerProcess(spec, index + 1, options))
  const isStopped = stopping.then(() => 'stopped' as const)
  for (const each of all) {
    const first = await Promise.race([each.start(), isStopped])
    if (first === 'stopped') break
    if (first === 'failed') return stopAll(all, options, FAILED)
    if (each === all.at(-1)) options.onServing()
  }
  await stopping
  return stopAll(all, options, DONE)
}

async function stopAll(all: readonly ServerProcess[], options: ProcessesOptions, code: ExitCode): Promise<ExitCode> {
  const { clock, stopRequests, stopDeadlineMs } = options
  const ended = Promise.all(all.map((each) => each.stop())).then(() => code)
  let cancel = (): void => undefined
  const late = new Promise<ExitCode>((resolve) => {
    const timer = clock.after(stopDeadlineMs, () => resolve(FAILED))
    cancel = () => timer.cancel()
  })
  const result = await Promise.race([ended, late, stopRequests.next().then(() => FAILED)])
  cancel()
  for (const each of all) each.kill()
  await ended
  return result
}

/** How one run of a process ended. */
interface End {
  readonly hasServed: boolean
  readonly wasHealthy: boolean
  /** For people: `code 1`, or the name of a signal. */
  readonly how: string
}

/** A server process, which is restarted when it ends by itself. */
class ServerProcess {
  readonly #spec: ProcessSpec
  readonly #number: number
  readonly #io: Io
  readonly #clock: Clock
  #isStopping = false
  #worker: Worker | undefined
  #over: Promise<void> = Promise.resolve()
  #halt: () => void = () => undefined
  readonly #halted = new Promise<void>((resolve) => {
    this.#halt = resolve
  })

  /** @param number 1 for the first. */
  constructor(spec: ProcessSpec, number: number, { io, clock }: ProcessesOptions) {
    this.#spec = spec
    this.#number = number
    this.#io = io
    this.#clock = clock
  }

  /** Resolves when the process serves, or when its first run has ended without serving. */
  start(): Promise<'serves' | 'failed'> {
    return new Promise((resolve) => {
      this.#over = this.#live(() => resolve('serves')).then(() => resolve('failed'))
    })
  }

  /** Runs and restarts the process until it is stopped, or until the first run has ended without serving. */
  async #live(onServing: () => void): Promise<void> {
    for (let failures = 0, isFirst = true; !this.#isStopping; isFirst = false) {
      const end = await this.#once(onServing)
      if (this.#isStopping || (isFirst && !end.hasServed)) return
      failures = end.wasHealthy ? 0 : failures + 1
      const waitMs = Math.min(RESTART_AFTER_MS.most, RESTART_AFTER_MS.first * 2 ** failures)
      this.#io.err(`The process ${this.#spec.name} ended (${end.how}). It starts again in ${waitMs / 1_000} s.\n`)
      await Promise.race([pause(this.#clock, waitMs), this.#halted])
    }
  }

  /** Runs the process once. Never rejects. */
  async #once(onServing: () => void): Promise<End> {
    let servedAt = Number.POSITIVE_INFINITY
    const how = await this.#run(() => {
      servedAt = performance.now()
      onServing()
    }).catch((error: Error) => {
      this.#io.err(`The system did not start the process ${this.#spec.name}: ${error.message}.\n`)
      return 'not started'
    })
    const servedMs = performance.now() - servedAt
    return { hasServed: servedMs >= 0, wasHealthy: servedMs >= HEALTHY_AFTER_MS, how }
  }

  /** Resolves with how the process ended. Rejects when the system cannot start it, for example for lack of memory. */
  async #run(onServing: () => void): Promise<string> {
    cluster.setupPrimary({ args: [...this.#spec.args] })
    const worker = cluster.fork({ ...this.#spec.env, [PROCESS_VARIABLE]: String(this.#number) })
    this.#worker = worker
    worker.on('message', (message: unknown) => {
      if (message === SERVING) onServing()
    })
    try {
      return await new Promise((resolve, reject) => {
        worker.once('exit', (code, signal) => resolve(signal ?? `code ${code}`))
        // The end of a running process is its exit event.
        worker.on('error', (error) => worker.process.pid === undefined && reject(error))
      })
    } finally {
      this.#worker = undefined
    }
  }

  /** Resolves when the process has ended. */
  stop(): Promise<void> {
    this.#isStopping = true
    this.#halt()
    this.#worker?.process.kill('SIGTERM')
    return this.#over
  }

  kill(): void {
    this.#worker?.process.kill('SIGKILL')
  }
}
