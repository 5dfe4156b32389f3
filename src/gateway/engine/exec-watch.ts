/** Turns an engine's reply to EXEC into the reply for the client. Must not reject. */
export type FillReply = (reply: Buffer) => Promise<Buffer>

/**
 * The transaction on a connection whose replies are not counted.
 *
 * ```
 *   none ──MULTI is sent──▶ opening ──+OK──▶ open ──reply to EXEC, or to DISCARD──▶ none
 *                              └──────any other reply──────▶ none
 * ```
 */
type ExecState =
  | { readonly kind: 'none' }
  | { readonly kind: 'opening'; readonly fill: FillReply }
  | { readonly kind: 'open'; readonly fill: FillReply }

const NONE: ExecState = { kind: 'none' }
const OK = '+OK\r\n'
const ABORTED = '-EXECABORT'
/** First byte of a reply to EXEC that is no error: an array, or the null of RESP3. */
const EXECUTED = new Set(['*', '_'])

/**
 * Finds the reply to EXEC where replies are not counted. Inside a transaction commands are answered with `+QUEUED` or an
 * error, so the first array or null after MULTI is the reply.
 */
export class ExecWatch {
  #state: ExecState = NONE

  /** Whether `see` needs the next replies. */
  get isWatching(): boolean {
    return this.#state.kind !== 'none'
  }

  /** Call it before the reply to MULTI arrives. `fill` completes the reply to EXEC. */
  begin(fill: FillReply): void {
    this.#state = { kind: 'opening', fill }
  }

  /** Like `begin`, after the reply to MULTI has arrived. */
  resume(fill: FillReply): void {
    this.#state = { kind: 'open', fill }
  }

  /** Ends the transaction, even if its last reply was not seen. */
  end(): void {
    this.#state = NONE
  }

  /** Takes the next reply. @returns the function that completes the reply, if it answers EXEC */
  see(reply: Buffer): FillReply | undefined {
    const state = this.#state
    const text = reply.toString('latin1', 0, ABORTED.length)
    if (state.kind === 'opening') {
      this.#state = text === OK ? { kind: 'open', fill: state.fill } : NONE
      return undefined
    }
    const isExecuted = EXECUTED.has(text.slice(0, 1)) || text === ABORTED
    if (isExecuted || text === OK) this.#state = NONE
    return isExecuted && state.kind === 'open' ? state.fill : undefined
  }
}
