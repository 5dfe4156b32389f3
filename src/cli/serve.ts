import type { Clock } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { DONE, type ExitCode, FAILED } from './exit-codes.js'

/** What `serve` needs of the application. */
export interface Servable {
  start(): Promise<void>
  stop(): Promise<void>
}

/** Requests to stop, in the order they arrive. */
export interface StopRequests {
  /** Resolves at the next request, counted from the last one that was taken. */
  next(): Promise<void>
}

/** The parts of one life of the server. */
export interface Life {
  readonly app: Servable
  readonly stopRequests: StopRequests
  readonly clock: Clock
  /** The application finishes its work within its grace; after this time it is given up. Milliseconds. */
  readonly stopDeadlineMs: number
  /** Called once when everything serves. */
  readonly onServing: () => void
}

/**
 * The life of a server process:
 *
 *     starting ──(all serve)──▶ serving ──(asked to stop)──▶ stopping ──(all ended)──▶ exit 0
 *        │  └────(asked to stop)──────────────────────────────▲   └─(asked again, or the deadline)─▶ exit 1
 *        └──(a part fails: the rest is stopped, the error is thrown)
 */
export async function serve(life: Life): Promise<ExitCode> {
  const asked = life.stopRequests.next().then(() => 'asked' as const)
  const started = life.app.start().then(() => 'serving' as const)
  const first = await Promise.race([started, asked]).catch(async (error: unknown) => {
    await stop(life)
    throw error
  })
  if (first === 'serving') {
    life.onServing()
    await asked
  }
  // A start that is cut short may fail; it is being stopped anyway.
  started.catch(() => undefined)
  return await stop(life)
}

async function stop({ app, stopRequests, clock, stopDeadlineMs }: Life): Promise<ExitCode> {
  const stopped = app.stop().then(() => DONE)
  const askedAgain = stopRequests.next().then(() => FAILED)
  let cancel = (): void => undefined
  const late = new Promise<never>((_, reject) => {
    const problem = `The server did not stop within ${stopDeadlineMs} ms and was ended. Nothing acknowledged is lost.`
    const timer = clock.after(stopDeadlineMs, () => reject(new HomeportError('cli_failed', { problem })))
    cancel = () => timer.cancel()
  })
  return await Promise.race([stopped, askedAgain, late]).finally(() => cancel())
}
