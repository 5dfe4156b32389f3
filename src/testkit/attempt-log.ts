import type { Attempt } from '../queue/index.js'
import type { DeliveryRecord } from './protocol.js'
import type { DeliveriesOptions } from './testing.cjs'

const MAX_ATTEMPTS = 10_000
const MAX_BYTES = 128 * 2 ** 20

/** The newest attempts of a test server, in the order in which they ended. Beyond the limits, the oldest are dropped. */
export class AttemptLog {
  #records: DeliveryRecord[] = []
  /** How many attempts have ended. */
  ended = 0
  #bytes = 0
  #waiting = new Set<() => void>()

  add(attempt: Attempt): void {
    const record = recordOf(attempt)
    this.ended++
    this.#records.push(record)
    this.#bytes += sizeOf(record)
    while (this.#records.length > MAX_ATTEMPTS || (this.#bytes > MAX_BYTES && this.#records.length > 1)) {
      const oldest = this.#records.shift()
      if (oldest) this.#bytes -= sizeOf(oldest)
    }
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  matching({ url = '', attempts = false }: DeliveriesOptions): DeliveryRecord[] {
    return this.#records.filter((record) => record.url.includes(url) && (attempts || record.state === 'delivered'))
  }

  /** Resolves when the next attempt has ended. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve))
  }
}

const sizeOf = ({ body, responseBody = '' }: DeliveryRecord): number => body.length + responseBody.length

const textOf = (bytes: Uint8Array | undefined): string => (bytes ? Buffer.from(bytes).toString('utf8') : '')

function recordOf({ message, outbound, outcome, nextAt }: Attempt): DeliveryRecord {
  const { url, method, headers, body } = outbound ?? message
  const isDelivered = outcome.kind === 'answered' && outcome.response.status >= 200 && outcome.response.status < 300
  return {
    messageId: message.messageId,
    kind: message.kind === 'http' ? 'http' : 'workflow',
    state: nextAt !== undefined ? 'retry' : isDelivered ? 'delivered' : 'failed',
    url,
    method,
    body: textOf(body),
    headers: Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, values.join(', ')])),
    attempt: message.retried + 1,
    ...(outcome.kind === 'answered'
      ? { status: outcome.response.status, responseBody: textOf(outcome.response.body) }
      : { error: outcome.error }),
    ...(message.scheduleId !== undefined && { scheduleId: message.scheduleId }),
    ...(message.queue !== undefined && { queue: message.queue }),
    ...(message.topic !== undefined && { urlGroup: message.topic }),
    labels: message.labels,
    at: outcome.finishedAt,
    ...(nextAt !== undefined && { retryAt: nextAt }),
  }
}
