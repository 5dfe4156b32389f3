import { PLAIN_LINES } from '../../http/index.js'
import type { IncomingHeaders } from './outgoing-request.js'

/**
 * The head of a plain response: a strict form of HTTP/1.1 that nearly all destinations use. It is a subset of what undici's
 * parser accepts, with the same meaning.
 */
export interface PlainResponseHead {
  readonly status: number
  readonly headers: IncomingHeaders
  /** Length of the head, bytes, including the empty line after it. */
  readonly headBytes: number
  readonly body: PlainBody
  /** How long the connection may wait for the next request, seconds; 0 or less: it must not be used again. */
  readonly keepSeconds: number
}

/** How the body of a response is framed. */
export type PlainBody = { readonly kind: 'length'; readonly bytes: number } | { readonly kind: 'chunked' }

/** A longer head is not plain. */
export const MAX_PLAIN_RESPONSE_HEAD_BYTES = 16_384

const NO_BODY: PlainBody = { kind: 'length', bytes: 0 }
const LINE_END = '\r\n'
const END = '\r\n\r\n'
const BEGINNING = 'HTTP/1.1 '
const STATUS_LINE = /^HTTP\/1\.1 ([2-5][0-9]{2}) [ -~]*$/
const LENGTH = /^[0-9]{1,15}$/
const KEEP_ALIVE_TIMEOUT = /(?:^|[ ,])timeout=([0-9]{1,6})(?:$|[ ,])/
/** Headers that change how a response is framed, or that belong to another protocol. */
const NOT_PLAIN = ['upgrade', 'trailer', 'te', 'proxy-connection']
/** Headers that occur once. */
const SINGLE = ['content-length', 'transfer-encoding', 'connection', 'keep-alive']
/** Statuses whose responses have no body, regardless of their headers. */
const WITHOUT_BODY = new Set([204, 304])

/** How long a connection waits for its next request if the destination does not say so, and at most. */
const KEEP_SECONDS = 4
const MAX_KEEP_SECONDS = 600
/** Connections are closed this much before the destination would close them, when a request may already be on its way. */
const EARLIER_SECONDS = 2

/**
 * Reads the heads of responses, and caches the last one: within a second, a
 * destination nearly always sends the same head.
 */
export class PlainResponseHeads {
  #lastText = ''
  #last: PlainResponseHead | undefined

  /** Reads the head at the beginning of `text`, which may end anywhere; `undefined` if the head is not plain. */
  read(text: string): PlainResponseHead | 'incomplete' | undefined {
    if (this.#last && text.startsWith(this.#lastText)) return this.#last
    const end = text.indexOf(END)
    if (end < 0) return mayBegin(text) && text.length < MAX_PLAIN_RESPONSE_HEAD_BYTES ? 'incomplete' : undefined
    const head = parse(text, end)
    if (!head) return undefined
    this.#lastText = text.slice(0, head.headBytes)
    this.#last = head
    return head
  }
}

/** Whether a plain head may begin like this. If not, undici gets the response at once, even if the head never completes. */
function mayBegin(text: string): boolean {
  if (!BEGINNING.startsWith(text.slice(0, BEGINNING.length))) return false
  const first = text.indexOf(LINE_END)
  if (first < 0) return !text.includes('\n')
  const last = text.lastIndexOf(LINE_END)
  const lines = text.slice(first + LINE_END.length, last + LINE_END.length)
  const isPlain = STATUS_LINE.test(text.slice(0, first)) && (lines === '' || PLAIN_LINES.test(lines))
  return isPlain && !text.includes('\n', last + LINE_END.length)
}

function parse(text: string, end: number): PlainResponseHead | undefined {
  const lineEnd = text.indexOf(LINE_END)
  const [, digits] = STATUS_LINE.exec(text.slice(0, lineEnd)) ?? []
  const lines = text.slice(lineEnd + LINE_END.length, end + LINE_END.length)
  if (digits === undefined || !PLAIN_LINES.test(lines)) return undefined
  const status = Number(digits)
  const headers = headersIn(lines)
  const body = bodyOf(status, headers)
  const keepSeconds = keepSecondsOf(headers)
  if (!body || keepSeconds === undefined || NOT_PLAIN.some((name) => headers[name] !== undefined)) return undefined
  return { status, headers, headBytes: end + END.length, body, keepSeconds }
}

function headersIn(lines: string): Record<string, string | string[]> {
  // Without a prototype, so that a header named like a property of objects is not found there.
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let at = 0; at < lines.length; ) {
    const colon = lines.indexOf(':', at)
    const end = lines.indexOf(LINE_END, colon)
    const name = lines.slice(at, colon).toLowerCase()
    const value = lines.slice(colon + 2, end)
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (typeof before === 'string') headers[name] = [before, value]
    else before.push(value)
    at = end + LINE_END.length
  }
  return headers
}

/** The framing of the body; `undefined` if it is another one, such as the end of the connection. */
function bodyOf(status: number, headers: IncomingHeaders): PlainBody | undefined {
  if (SINGLE.some((name) => Array.isArray(headers[name]))) return undefined
  const { 'content-length': length, 'transfer-encoding': encoding } = headers
  if (WITHOUT_BODY.has(status)) return encoding === undefined && Number(length ?? 0) === 0 ? NO_BODY : undefined
  if (encoding !== undefined) return encoding === 'chunked' && length === undefined ? { kind: 'chunked' } : undefined
  return typeof length === 'string' && LENGTH.test(length) ? { kind: 'length', bytes: Number(length) } : undefined
}

/** How long the connection may be kept; `undefined` if `Connection` has another value than `keep-alive` or `close`. */
function keepSecondsOf({ connection = 'keep-alive', 'keep-alive': hint }: IncomingHeaders): number | undefined {
  const word = String(connection).toLowerCase()
  if (word === 'close') return 0
  if (word !== 'keep-alive') return undefined
  const [, seconds] = KEEP_ALIVE_TIMEOUT.exec(String(hint ?? '')) ?? []
  return seconds === undefined ? KEEP_SECONDS : Math.min(Number(seconds), MAX_KEEP_SECONDS) - EARLIER_SECONDS
}
