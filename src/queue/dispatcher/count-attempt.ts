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
  if (message.kind === PLAIN_KIND) countActivity(meter, message.accountId, outcome, retry !== undefined)
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

/** Attempts of runs are counted by the module of runs. */
function countActivity({ activity }: QueueMeter, accountId: string, outcome: AttemptOutcome, isRetried: boolean): void {
  activity.add(accountId, isDelivered(outcome) ? 'delivered' : 'failed_attempts')
  if (!isDelivered(outcome) && !isRetried) activity.add(accountId, 'failed_messages')
}

/** Whether the destination has accepted a message. */
export function isDelivered(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'answered' && outcome.response.status >= 200 && outcome.response.status < 300
}
