import type { Clock } from '../../base/index.js'
import type { Outbound, PendingMessage, SignedAhead, ToSign } from '../types.js'
import { deliveryHeaders, signDelivery } from './delivery-headers.js'

/** If a message waits longer than this after its headers were made ahead, it is signed again with the current time. */
const MAX_AHEAD_MS = 1_000

/** What `RequestHeaders` is built from. */
export interface RequestHeadersDeps {
  readonly clock: Clock
  /** Current signing key of an account. */
  readonly signingKey: (accountId: string) => string
  /** Sent as `Upstash-Region`. */
  readonly region: string
}

/** Makes the headers of requests, with their signatures: when they are sent, or ahead of that. */
export class RequestHeaders {
  readonly #deps: RequestHeadersDeps

  constructor(deps: RequestHeadersDeps) {
    this.#deps = deps
  }

  /**
   * All headers of a request that is sent now, as a flat list of names and values.
   * @param bodyHash from `longBodyHash`.
   */
  of(message: PendingMessage, outbound: Outbound, bodyHash?: string): string[] {
    const { ahead } = outbound
    return ahead && this.#isValid(ahead, message) ? ahead.headers : this.#sign(message, outbound, bodyHash).headers
  }

  /** See `Queue.signAhead`. */
  ahead(message: ToSign, outbound: Outbound): Outbound {
    return { ...outbound, ahead: this.#sign(message, outbound) }
  }

  #isValid({ messageId, retried, key, at }: SignedAhead, message: PendingMessage): boolean {
    const isSame = messageId === message.messageId && retried === message.retried
    return isSame && key === this.#deps.signingKey(message.accountId) && this.#isRecent(at)
  }

  /** Whether a time is recent. A time in the future is not: the clock may have been set back. */
  #isRecent(at: number): boolean {
    const ageMs = this.#deps.clock.now() - at
    return ageMs >= 0 && ageMs <= MAX_AHEAD_MS
  }

  #sign(message: ToSign, outbound: Outbound, bodyHash?: string): SignedAhead {
    const { signingKey, clock, region } = this.#deps
    const { messageId, retried } = message
    const key = signingKey(message.accountId)
    const at = clock.now()
    const signature = signDelivery({ key, url: outbound.url, body: outbound.body, hash: bodyHash, now: at })
    return { messageId, retried, key, at, headers: deliveryHeaders({ message, outbound, signature, region }) }
  }
}
