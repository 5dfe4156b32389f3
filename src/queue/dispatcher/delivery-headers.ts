import type { Outbound, PendingMessage } from '../types.js'

/** What the headers of one attempt are made of. */
export interface DeliveryHeading {
  readonly message: PendingMessage
  readonly outbound: Outbound
  /** From `signDelivery`. */
  readonly signature: string
  readonly region: string
}

/** Headers that every delivery carries; none of them can be replaced by a forwarded one. */
const OWN = new Set([
  'User-Agent',
  'Upstash-Message-Id',
  'Upstash-Retried',
  'Upstash-Region',
  'Upstash-Caller-Ip',
  'Upstash-Schedule-Id',
  'Upstash-Topic-Name',
  'Upstash-Signature',
])

/**
 * All headers of one attempt as a flat list of names and values: those that every delivery carries (reference queue
 * 3.1), and then those of the request itself.
 */
export function deliveryHeaders({ message, outbound, signature, region }: DeliveryHeading): string[] {
  const flat = ['User-Agent', 'Upstash-QStash', 'Upstash-Message-Id', message.messageId]
  flat.push('Upstash-Retried', String(message.retried), 'Upstash-Region', region, 'Upstash-Signature', signature)
  if (message.topic !== undefined) flat.push('Upstash-Topic-Name', message.topic)
  if (message.scheduleId !== undefined) flat.push('Upstash-Schedule-Id', message.scheduleId)
  if (message.callerIp !== undefined) flat.push('Upstash-Caller-Ip', message.callerIp)
  for (const name in outbound.headers) {
    if (OWN.has(name)) continue
    for (const value of outbound.headers[name] ?? []) flat.push(name, value)
  }
  return flat
}
