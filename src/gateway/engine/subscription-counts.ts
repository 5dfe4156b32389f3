/** Number of a client's subscriptions, by kind. */
export interface Subscribed {
  readonly channels: number
  readonly patterns: number
  readonly shardChannels: number
}

/** The beginning of a confirmation of SUBSCRIBE, UNSUBSCRIBE and their kin, in both protocol versions. */
const CONFIRMATION = /^[*>]3\r\n\$\d+\r\n(s|p)?(?:un)?subscribe\r\n/
const MAX_CONFIRMATION_HEAD_BYTES = 32
/** The end of a confirmation: the number of subscriptions left. */
const REMAINING = /:(\d+)\r\n$/
const MAX_REMAINING_BYTES = 24

/** Counts the subscriptions of a client from the confirmations that it gets. */
export class SubscriptionCounts {
  /** Channels and patterns, by the last confirmation; shard channels are counted apart. */
  #channels = 0
  /** Number of patterns in `#channels`. */
  #patterns = 0
  #shardChannels = 0

  get total(): number {
    return this.#channels + this.#shardChannels
  }

  get byKind(): Subscribed {
    const patterns = Math.min(this.#patterns, this.#channels)
    return { channels: this.#channels - patterns, patterns, shardChannels: this.#shardChannels }
  }

  /** Takes a frame on its way to the client; only confirmations count. */
  note(frame: Buffer): void {
    const found = CONFIRMATION.exec(frame.toString('latin1', 0, MAX_CONFIRMATION_HEAD_BYTES))
    if (!found) return
    const remaining = Number(REMAINING.exec(frame.toString('latin1', frame.length - MAX_REMAINING_BYTES))?.[1] ?? 0)
    if (found[1] === 's') {
      this.#shardChannels = remaining
      return
    }
    if (found[1] === 'p') this.#patterns = Math.max(0, this.#patterns + remaining - this.#channels)
    this.#channels = remaining
  }
}
