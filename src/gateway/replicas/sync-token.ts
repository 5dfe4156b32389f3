const TOKEN = /^([0-9a-z]{1,16})-([0-9a-z]{1,10})-[0-9a-z]{1,10}$/

/**
 * The texts that REST clients get with every answer and send back with the next request, `upstash-sync-token`
 * (reference redis 3.3): what they have seen, as a moment of their database. Any text may come back.
 */
export class SyncTokens {
  readonly #life: string
  #count = 0

  /** `startedAtMs` tells the tokens of this life from those of others. */
  constructor(startedAtMs: number) {
    this.#life = startedAtMs.toString(36)
  }

  /** A token that was never given before, for one who has seen `moment`. */
  next(moment: number): string {
    return `${this.#life}-${moment.toString(36)}-${(++this.#count).toString(36)}`
  }

  /**
   * The moment that a token stands for. One of another life or node may stand for anything, so the present is meant; a
   * text that is no token stands for nothing.
   */
  momentOf(text: string | undefined): number {
    const [, life, moment = ''] = TOKEN.exec(text ?? '') ?? []
    if (life === undefined) return 0
    return life === this.#life ? Number.parseInt(moment, 36) : Number.POSITIVE_INFINITY
  }
}
