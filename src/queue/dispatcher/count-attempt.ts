import type { QueueMeter } from '../../telemetry/index.js'
import { dueOf } from '../transactions/priority.js'
import type { AttemptOutcome, PendingMessage, Settled } from '../types.js'

/** Messages of this kind become dead letters when they fail for good; those of runs fail their run. */
export const PLAIN_KIND = 'http'

/** Counts an attempt whose outcome is committed. `host` is that of the destination. */
export function countAttempt(
  meter: QueueMeter,
  message: PendingMessage,
  outcome: AttemptOutcome,
  { retry }: Settled,
  host: string,
): void {
  const endpoint = meter.endpoints.of(host)
  if (endpoint) {
    endpoint[retry ? 'retried' : isDelivered(outcome) ? 'delivered' : 'failed']++
    endpoint.seconds += Math.max(0, outcome.finishedAt - outcome.startedAt) / 1_000
  }
  meter.delay.record((outcome.startedAt - dueOf(message)) / 1_000)
  meter.duration.record((outcome.finishedAt - outcome.startedAt) / 1_000)
  if (retry) {
    meter.deliveries.retried++
    return
  }
  meter.attempts.record(message.retried + 1)
  if (isDelivered(outcome)) meter.deliveries.delivered++
  else {
    meter.deliveries.failed++
    if (message.kind === PLAIN_KIND) meter.deadLetters++
  }
}

/** Whether the destination has accepted a message. */
export function isDelivered(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'answered' && outcome.response.status >= 200 && outcome.response.status < 300
}
