import { StringDecoder } from 'node:string_decoder'

/** Takes the text of events. */
export interface EventSink {
  /** Takes more text of the current event. */
  write(text: string): void
  /** Called when the engine has answered the command with this error. */
  refuse(error: string): void
}

const LF = 10
const CR = 13
const MINUS = '-'
const DOLLAR = '$'
const STAR = '*'
const OK = '+OK'
const BREAKS = /[\r\n]+/g
const FIRST_BREAKS = /^[\r\n]+/
const LAST_BREAK = /[\r\n]$/

/**
 * The element to which the next bytes belong.
 *
 * ```
 *   line ──head of a string──▶ payload ──its last byte──▶ behind payload ──line end──▶ line
 * ```
 */
type EventState =
  | { readonly kind: 'line' }
  | { readonly kind: 'payload'; leftBytes: number; readonly decoder: StringDecoder; endsInBreak: boolean }
  | { readonly kind: 'behind payload' }

const LINE: EventState = { kind: 'line' }
const BEHIND_PAYLOAD: EventState = { kind: 'behind payload' }

/**
 * Turns the bytes that an engine sends to a subscriber, or to a client of MONITOR, into server-sent events (reference redis
 * 4.5). The fields of a list are joined by commas, and their line breaks become spaces, because an event cannot contain line
 * breaks. Any other frame is a line of MONITOR. A message may have many megabytes, so its text is passed on as it arrives.
 */
export class EventText {
  readonly #sink: EventSink
  #state: EventState = LINE
  /** A line whose end has not arrived. */
  #begun: Buffer = Buffer.alloc(0)
  /** Number of fields that the current list still lacks. */
  #fieldsLeft = 0
  /** Text before the next field. */
  #separator = ''

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  /** Whether the sink has only the beginning of an event. */
  get isMidEvent(): boolean {
    return this.#fieldsLeft > 0
  }

  /** Takes the next bytes of the engine. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      at = this.#state.kind === 'payload' ? this.#payload(this.#state, chunk, at) : this.#line(chunk, at)
    }
  }

  #line(chunk: Buffer, from: number): number {
    const end = chunk.indexOf(LF, from)
    const line = Buffer.concat([this.#begun, chunk.subarray(from, end < 0 ? chunk.length : end)])
    this.#begun = end < 0 ? line : Buffer.alloc(0)
    if (end < 0) return chunk.length
    if (this.#state.kind === 'behind payload') this.#endField()
    else this.#takeLine(line.toString('utf8', 0, line.at(-1) === CR ? line.length - 1 : line.length))
    return end + 1
  }

  #takeLine(line: string): void {
    const text = line.slice(1)
    if (this.#fieldsLeft > 0) this.#field(line[0], text)
    else if (line[0] === STAR) {
      this.#fieldsLeft = Number(text)
      this.#separator = 'data: '
    } else if (line[0] === MINUS) this.#sink.refuse(text)
    else this.#sink.write(`data: ${line === OK ? '"OK"' : text}\n\n`)
  }

  #field(type: string | undefined, text: string): void {
    this.#sink.write(this.#separator)
    this.#separator = ','
    const leftBytes = type === DOLLAR ? Number(text) : 0
    if (leftBytes > 0)
      this.#state = { kind: 'payload', leftBytes, decoder: new StringDecoder('utf8'), endsInBreak: false }
    else if (type === DOLLAR && leftBytes === 0) this.#state = BEHIND_PAYLOAD
    else {
      if (type !== DOLLAR) this.#sink.write(text)
      this.#endField()
    }
  }

  #payload(state: EventState & { kind: 'payload' }, chunk: Buffer, from: number): number {
    const end = Math.min(chunk.length, from + state.leftBytes)
    state.leftBytes -= end - from
    const decoded = state.decoder.write(chunk.subarray(from, end)) + (state.leftBytes === 0 ? state.decoder.end() : '')
    const text = state.endsInBreak ? decoded.replace(FIRST_BREAKS, '') : decoded
    if (decoded !== '') state.endsInBreak = LAST_BREAK.test(decoded)
    if (text !== '') this.#sink.write(text.replace(BREAKS, ' '))
    if (state.leftBytes === 0) this.#state = BEHIND_PAYLOAD
    return end
  }

  #endField(): void {
    this.#state = LINE
    if (--this.#fieldsLeft === 0) this.#sink.write('\n\n')
  }
}
