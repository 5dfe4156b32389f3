import type { Clock, Timer } from '../../base/index.js'
import { type HomeportError, isError } from '../../contract/errors/errors.js'
import type { Logger } from '../../telemetry/index.js'
import type { AttemptOutcome } from '../types.js'
import { isBefore, type Place } from './entry.js'

/** After the store has failed, the same is tried again this much later. */
const PAUSE_AFTER_FAILURE_MS = 1_000
/** After damage, which does not go by itself, it is tried again less and less often, down to this. */
const LONGEST_PAUSE_MS = 60_000
/** Messages that cannot be read are tried again this much later: somebody may have repaired what is damaged. */
const READ_AGAIN_MS = 10 * 60_000

/** How long to wait before something that failed this often in a row is tried again. The store may be back in a moment. */
export function pauseAfter(error: unknown, failures: number): number {
  if (!isError(error, 'store_damaged')) return PAUSE_AFTER_FAILURE_MS
  return Math.min(LONGEST_PAUSE_MS, PAUSE_AFTER_FAILURE_MS * 2 ** Math.min(failures, 10))
}

/** What comes of a message whose content is damaged: no request was made, and none ever will be. */
export function damagedOutcome({ details }: HomeportError<'store_damaged'>, now: number): AttemptOutcome {
  const error = `not sent: what was to be sent is damaged in the store of the server (${details.found})`
  return { kind: 'unanswered', error, isRefused: true, startedAt: now, finishedAt: now }
}

/** Messages that cannot be read: they wait in the store, and no other message waits for them. */
export class Unread {
  readonly #deps: { readonly clock: Clock; readonly logger: Logger }
  readonly #readAgain: (from: Place) => void
  /** The earliest of them, and when they are tried again. */
  #first: { place: Place; readonly timer: Timer } | undefined
  #isStopped = false

  /** @param readAgain told after a while, with the earliest of them. */
  constructor(deps: { readonly clock: Clock; readonly logger: Logger }, readAgain: (from: Place) => void) {
    this.#deps = deps
    this.#readAgain = readAgain
  }

  /** Another one was met. */
  add(place: Place): void {
    const { clock, logger } = this.#deps
    logger.error({ ...place }, 'a due message cannot be read, because the store is damaged; the others are delivered')
    if (this.#isStopped) return
    if (this.#first) {
      if (isBefore(place, this.#first.place)) this.#first.place = place
      return
    }
    const timer = clock.after(READ_AGAIN_MS, () => {
      const from = this.#first?.place
      this.#first = undefined
      if (from) this.#readAgain(from)
    })
    this.#first = { place, timer }
  }

  /** Nothing is tried again any more. */
  stop(): void {
    this.#isStopped = true
    this.#first?.timer.cancel()
  }
}
