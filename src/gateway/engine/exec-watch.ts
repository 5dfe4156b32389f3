/** Makes of an engine's reply to EXEC what the client gets. Must not reject. */
export type FillReply = (reply: Buffer) => Promise<Buffer>

/**
 * What is known of the transaction on a connection where replies are not counted.
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
/** What the reply to EXEC begins with, unless it is an error: an array, or the null of RESP3. */
const EXECUTED = new Set(['*', '_'])

/**
 * Finds the reply to EXEC where replies are not counted. Nothing has to be: inside of a transaction commands are answered
 * with `+QUEUED` or an error, so the first array or null after MULTI is the reply.
 */
export class ExecWatch {
  #state: ExecState = NONE

  /** Whether replies have to be shown. */
  get isWatching(): boolean {
    return this.#state.kind !== 'none'
  }

  /** The next reply is that to MULTI; `fill` is what becomes of the one to EXEC. */
  begin(fill: FillReply): void {
    this.#state = { kind: 'opening', fill }
  }

  /** The same behind the reply to MULTI. */
  resume(fill: FillReply): void {
    this.#state = { kind: 'open', fill }
  }

  /** The transaction has ended, whether its end was seen or not. */
  end(): void {
    this.#state = NONE
  }

  /** Takes the next reply. @returns what becomes of it when it is the one to EXEC. */
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
