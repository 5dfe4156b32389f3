import cluster, { type Worker } from 'node:cluster'
import { type Clock, pause } from '../../base/index.js'
import { PROCESS_VARIABLE } from '../../config/index.js'
import { DONE, type ExitCode, FAILED } from '../exit-codes.js'
import type { Io } from '../io.js'
import type { StopRequests } from '../serve.js'
import { SERVING } from './parent.js'

/** A server process to run: the arguments of `homeport`, and environment variables besides those of this process. */
export interface ProcessSpec {
  /** As messages call it. */
  readonly name: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** What runs the processes. */
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

/** A process that ends by itself is started again after this time, and later after each further end. */
const RESTART_AFTER_MS = { first: 500, most: 30_000 }
/** After this time of service, a process counts as well again. */
const WELL_AFTER_MS = 60_000

/**
 * Runs several server processes, and starts each again that ends by itself. They share their listening ports: this process
 * accepts connections and hands them to the servers in turn. The first one starts alone, because it prepares the store.
 */
export async function runProcesses(options: ProcessesOptions): Promise<ExitCode> {
  // When all processes end at once, nothing else keeps this one alive until it starts them again.
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

/** How one life of a process ended. */
interface End {
  readonly hasServed: boolean
  readonly wasWell: boolean
  /** For people: `code 1`, or the name of a signal. */
  readonly how: string
}

/** A process, in all its lives. */
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

  /** Resolves when it serves, or when its first life has ended without that. */
  start(): Promise<'serves' | 'failed'> {
    return new Promise((resolve) => {
      this.#over = this.#live(() => resolve('serves')).then(() => resolve('failed'))
    })
  }

  /** One life after the other, until it is stopped or the first one has not served. */
  async #live(onServing: () => void): Promise<void> {
    for (let failures = 0, isFirst = true; !this.#isStopping; isFirst = false) {
      const end = await this.#once(onServing)
      if (this.#isStopping || (isFirst && !end.hasServed)) return
      failures = end.wasWell ? 0 : failures + 1
      const waitMs = Math.min(RESTART_AFTER_MS.most, RESTART_AFTER_MS.first * 2 ** failures)
      this.#io.err(`The process ${this.#spec.name} ended (${end.how}). It starts again in ${waitMs / 1_000} s.\n`)
      await Promise.race([pause(this.#clock, waitMs), this.#halted])
    }
  }

  /** One life. Never rejects. */
  async #once(onServing: () => void): Promise<End> {
    let servedAt = Number.POSITIVE_INFINITY
    const how = await this.#run(() => {
      servedAt = performance.now()
      onServing()
    }).catch((error: Error) => {
      this.#io.err(`The system did not start the process ${this.#spec.name}: ${error.message}.\n`)
      return 'not started'
    })
    const wellMs = performance.now() - servedAt
    return { hasServed: wellMs >= 0, wasWell: wellMs >= WELL_AFTER_MS, how }
  }

  /** Resolves with how it ended. Rejects when the system does not start it, for example for lack of memory. */
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
        // One that runs ends by an exit.
        worker.on('error', (error) => worker.process.pid === undefined && reject(error))
      })
    } finally {
      this.#worker = undefined
    }
  }

  /** Resolves when it has ended. */
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
