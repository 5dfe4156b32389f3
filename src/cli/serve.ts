import type { EventEmitter } from 'node:events'
import type { Clock } from '../base/index.js'
import { failedWith } from './errors.js'
import { DONE, type ExitCode, FAILED } from './exit-codes.js'

/** The part of the application that `serve` needs. */
export interface Servable {
  start(): Promise<void>
  stop(): Promise<void>
}

/** Requests to stop, in the order of arrival. */
export interface StopRequests {
  /** Resolves at the next request that no earlier call has consumed. */
  next(): Promise<void>
}

/** The collaborators and settings of `serve`. */
export interface ServeOptions {
  readonly app: Servable
  readonly stopRequests: StopRequests
  readonly clock: Clock
  /** `serve` stops waiting for `app.stop()` after this time, milliseconds. It includes the grace period of the app. */
  readonly stopDeadlineMs: number
  /** Called once when the server serves. */
  readonly onServing: () => void
}

/**
 * The life of a server process:
 *
 *     starting ──(all serve)──▶ serving ──(asked to stop)──▶ stopping ──(all ended)──▶ exit 0
 *        │  └────(asked to stop)──────────────────────────────▲   └─(asked again, or the deadline)─▶ exit 1
 *        └──(the start fails: everything is stopped, the error is thrown)
 */
export async function serve(options: ServeOptions): Promise<ExitCode> {
  const asked = options.stopRequests.next().then(() => 'asked' as const)
  const started = options.app.start().then(() => 'serving' as const)
  const first = await Promise.race([started, asked]).catch(async (error: unknown) => {
    await stop(options)
    throw error
  })
  if (first === 'serving') {
    options.onServing()
    await asked
  }
  // A start that was interrupted may fail, which does not matter: the server is stopping.
  started.catch(() => undefined)
  return await stop(options)
}

async function stop({ app, stopRequests, clock, stopDeadlineMs }: ServeOptions): Promise<ExitCode> {
  const stopped = app.stop().then(() => DONE)
  const askedAgain = stopRequests.next().then(() => FAILED)
  let cancel = (): void => undefined
  const late = new Promise<never>((_, reject) => {
    const kept = 'No acknowledged write is lost, except of databases without a log (db_type "bolt").'
    const problem = `The server did not stop within ${stopDeadlineMs} ms and was killed. ${kept}`
    const timer = clock.after(stopDeadlineMs, () => reject(failedWith(problem)))
    cancel = () => timer.cancel()
  })
  return await Promise.race([stopped, askedAgain, late]).finally(() => cancel())
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Signals within this time after a request count as the same request. */
const SAME_REQUEST_MS = 1_000

/**
 * Turns termination signals into stop requests, until the process ends.
 *
 * A terminal sends Ctrl-C to all its processes, and npm forwards the signals that it gets to the server. One Ctrl-C then
 * arrives as two signals, some milliseconds apart. The second signal must not count as a second request, which would kill
 * the server.
 */
export function stopSignals(clock: Clock, source: Pick<EventEmitter, 'on'> = process): StopRequests {
  const waiting: (() => void)[] = []
  let unconsumed = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const request = (): void => {
    if (clock.now() - lastMs < SAME_REQUEST_MS) return
    lastMs = clock.now()
    const next = waiting.shift()
    if (next) next()
    else unconsumed++
  }
  for (const signal of SIGNALS) source.on(signal, request)
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      if (unconsumed === 0) return void waiting.push(resolve)
      unconsumed--
      resolve()
    })
  return { next }
}
