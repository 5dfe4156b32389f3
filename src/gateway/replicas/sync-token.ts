const TOKEN = /^([0-9a-z]{1,16})-([0-9a-z]{1,10})-[0-9a-z]{1,10}$/

/**
 * The sync tokens of REST clients, `upstash-sync-token` (reference redis 3.3). A client gets one with every answer and
 * sends it back with the next request: it encodes what the client has seen, as a moment of its database. Clients may send
 * any text.
 */
export class SyncTokens {
  readonly #run: string
  #count = 0

  /** `startedAtMs` identifies the tokens of this process. */
  constructor(startedAtMs: number) {
    this.#run = startedAtMs.toString(36)
  }

  /** A new token for a client that has seen `moment`. */
  next(moment: number): string {
    return `${this.#run}-${moment.toString(36)}-${(++this.#count).toString(36)}`
  }

  /**
   * The moment of a token. A token of another process or node could mean any moment, so it counts as the present (infinity).
   * Text that is not a token means no moment (0).
   */
  momentOf(text: string | undefined): number {
    const [, run, moment = ''] = TOKEN.exec(text ?? '') ?? []
    if (run === undefined) return 0
    return run === this.#run ? Number.parseInt(moment, 36) : Number.POSITIVE_INFINITY
  }
}
