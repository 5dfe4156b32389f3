import { type HeaderMap, storedHeaders } from '../../queue/index.js'
import { errorText } from '../protocol/thrown.js'
import type { PastAttempt, PendingAttempt } from '../transactions/runs-logs.js'

/** A failed attempt, as run logs show it. */
export interface AttemptError {
  /** What is wrong, in a text for people. */
  readonly error: string
  readonly status: number
  readonly headers: HeaderMap
  readonly body: string
  readonly time: number
}

/** A failed attempt, with its body cut to `trimTo` characters. */
export function attemptError(attempt: Omit<PendingAttempt, 'message_seq'>, trimTo: number): AttemptError {
  return {
    error: errorText(attempt),
    status: attempt.status,
    headers: storedHeaders(attempt.headers),
    body: trim(new TextDecoder().decode(attempt.body ?? undefined), trimTo),
    time: attempt.started_at,
  }
}

/** The number of the step that a delivery was for. */
export type StepOfDelivery = number | 'unknown'

/** Failed attempts of deliveries that are over, by the step that each was for. */
export type ErrorsByStep = ReadonlyMap<StepOfDelivery, readonly AttemptError[]>

/**
 * The failed attempts of deliveries that came through in the end, or that a cancellation has ended, by the step that
 * each was for.
 * @param stepOf the step that the delivery of a message was for.
 */
export function errorsByStep(
  attempts: readonly PastAttempt[],
  stepOf: (messageId: string) => StepOfDelivery,
  trimTo: number,
): ErrorsByStep {
  const byStep = new Map<StepOfDelivery, AttemptError[]>()
  for (const attempt of attempts) {
    const step = stepOf(attempt.message_id)
    const errors = byStep.get(step)
    if (errors) errors.push(attemptError(attempt, trimTo))
    else byStep.set(step, [attemptError(attempt, trimTo)])
  }
  return byStep
}

/** Cuts a text, telling nothing of it: readers asked for it. */
export function trim(text: string, trimTo: number): string {
  return text.length > trimTo ? text.slice(0, trimTo) : text
}
