import type { Clock, Timer } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { Logger } from '../../telemetry/index.js'
import type { AttemptOutcome } from '../types.js'
import { isBefore, type Place } from './entry.js'

/** Retry delay after a failure of the store or of a kind. */
export const PAUSE_AFTER_FAILURE_MS = 1_000
/** The retry delay after permanent failures, such as damage, doubles up to this. */
const MAX_PAUSE_MS = 60_000
/** The commit of an outcome is given up after this many permanent failures in a row. */
const GIVE_UP_AFTER = 5
/** How long until unreadable messages are read again, because an operator may have repaired the store. */
const READ_AGAIN_MS = 10 * 60_000

/** Retry delay after this many permanent failures in a row. */
export const pauseAfter = (failures: number): number =>
  Math.min(MAX_PAUSE_MS, PAUSE_AFTER_FAILURE_MS * 2 ** Math.min(failures, 10))

/**
 * The outcome to store instead of one whose commit has failed permanently this many times in a row: the message fails with
 * the reason. `undefined`: the commit is retried.
 */
export function replacementOutcome(
  outcome: AttemptOutcome,
  failure: unknown,
  failures: number,
): AttemptOutcome | undefined {
  if (failures !== GIVE_UP_AFTER || isError(failure, 'store_damaged')) return undefined
  const { startedAt, finishedAt } = outcome
  const what = outcome.kind === 'answered' ? `the answer ${outcome.response.status}` : outcome.error
  const why =
    failure instanceof HomeportError ? failure.message : 'see queue_outcome_not_stored in the log of the server'
  const error = `${what} could not be stored (${why}). A retry sends the message again.`
  return { kind: 'unanswered', error, isRefused: true, startedAt, finishedAt }
}

/** Thrown by a kind for a message that can never be sent. The message fails with this text. */
export class NeverSent extends Error {}

/** Outcome of a message whose request can never be prepared. `undefined`: the message is tried again. */
export function neverSentOutcome(failure: unknown, now: number): AttemptOutcome | undefined {
  const why = isError(failure, 'store_damaged')
    ? `its content is damaged in the store of the server (${failure.details.found})`
    : failure instanceof NeverSent && failure.message
  if (!why) return undefined
  return { kind: 'unanswered', error: `not sent: ${why}`, isRefused: true, startedAt: now, finishedAt: now }
}

/** Messages that cannot be read. They wait in the store and block no other message. */
export class UnreadableMessages {
  readonly #deps: { readonly clock: Clock; readonly logger: Logger }
  readonly #readAgain: (from: Place) => void
  /** The place of the earliest unreadable message, and the timer of the next try. */
  #first: { place: Place; readonly timer: Timer } | undefined
  #isStopped = false

  /** @param readAgain called 10 minutes later, with the place of the earliest unreadable message. */
  constructor(deps: { readonly clock: Clock; readonly logger: Logger }, readAgain: (from: Place) => void) {
    this.#deps = deps
    this.#readAgain = readAgain
  }

  /** Reports one more unreadable message. */
  add(place: Place): void {
    const { clock, logger } = this.#deps
    logger.error('queue_message_unreadable', { ...place })
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

  /** Cancels the next try. */
  stop(): void {
    this.#isStopped = true
    this.#first?.timer.cancel()
  }
}
