/**
 * The head of a plain request: the strict form of HTTP/1.1 in which clients send nearly all requests. Node's parser accepts
 * every plain head and gives it the same meaning, so it does not matter which of the two reads a request.
 */

/** The headers of a request by their lower-case names. Each occurs once. */
type Headers = Record<string, string>

/** A plain head, parsed. */
export interface PlainHead {
  readonly method: 'GET' | 'POST'
  readonly target: string
  /** Valid until the next head of the connection is read. */
  readonly headers: Headers
  /** Length of the head, bytes, including the empty line after it. */
  readonly headBytes: number
  /** Length of the body that follows it, bytes. */
  readonly bodyBytes: number
}

/** A longer head is not plain. */
export const MAX_PLAIN_HEAD_BYTES = 8_192

const LINE_END = '\r\n'
const END = '\r\n\r\n'
const BEGINNING = /^(?:GET|POST) \//
const BARE_LF = /(?<!\r)\n/
const REQUEST_LINE = /^(GET|POST) (\/[!-~]*) HTTP\/1\.1$/
/** The lines of a plain head, also of a response: values are visible ASCII characters with spaces between them. */
export const PLAIN_LINES = /^(?:[A-Za-z][A-Za-z0-9-]*: [!-~]+(?: +[!-~]+)*\r\n)+$/
const LENGTH_LINE = /^content-length: ([0-9]{1,7})\r\n/im
const LENGTH = /^[0-9]{1,7}$/
/** Headers that change how a request is framed or answered. */
const NOT_PLAIN = ['transfer-encoding', 'expect', 'upgrade', 'trailer', 'te', 'keep-alive', 'proxy-connection']

/** The last header lines of a client. It nearly always sends the same ones, except for the length of the body. */
interface KnownLines {
  /** The lines up to the digits of `Content-Length`; all lines without that header. */
  readonly before: string
  /** The lines after the digits of `Content-Length`; empty without that header. */
  readonly behind: string
  readonly headers: Headers
}

/** Reads the heads of the requests of one connection. */
export class PlainHeads {
  #known: KnownLines | undefined

  /** Reads the head at the beginning of `text`, which may end anywhere. Undefined if the head is not plain. */
  read(text: string): PlainHead | 'incomplete' | undefined {
    const end = text.indexOf(END)
    // Node refuses a line that ends without CR at once; here, the end of such a head would never come.
    if (end < 0) return BEGINNING.test(text) && !BARE_LF.test(text) ? 'incomplete' : undefined
    const lineEnd = text.indexOf(LINE_END)
    const [, method, target] = REQUEST_LINE.exec(text.slice(0, lineEnd)) ?? []
    const headers = target && this.#headersIn(text.slice(lineEnd + LINE_END.length, end + LINE_END.length))
    if (!target || !headers) return undefined
    const headBytes = end + END.length
    const bodyBytes = Number(headers['content-length'] ?? 0)
    return { method: method === 'GET' ? 'GET' : 'POST', target, headers, headBytes, bodyBytes }
  }

  #headersIn(lines: string): Headers | undefined {
    const known = this.#known
    const length = known && lengthBetween(lines, known)
    if (known && length !== undefined) {
      if (length !== '') known.headers['content-length'] = length
      return known.headers
    }
    const headers = PLAIN_LINES.test(lines) ? parse(lines) : undefined
    if (!headers || !isPlain(headers)) return undefined
    this.#known = knownFrom(lines, headers)
    return headers
  }
}

/** The digits of `Content-Length`, or '' without that header; undefined when the lines differ from the known ones. */
function lengthBetween(lines: string, { before, behind }: KnownLines): string | undefined {
  if (!lines.startsWith(before) || !lines.endsWith(behind)) return undefined
  if (behind === '') return lines.length === before.length ? '' : undefined
  const length = lines.slice(before.length, -behind.length)
  return LENGTH.test(length) ? length : undefined
}

function knownFrom(lines: string, headers: Headers): KnownLines {
  const found = LENGTH_LINE.exec(lines)
  if (!found) return { before: lines, behind: '', headers }
  const digitsEnd = found.index + found[0].length - LINE_END.length
  return { before: lines.slice(0, digitsEnd - (found[1] ?? '').length), behind: lines.slice(digitsEnd), headers }
}

/** Undefined when a header occurs twice: the meaning of that depends on the header. */
function parse(lines: string): Headers | undefined {
  const headers: Headers = {}
  for (let at = 0; at < lines.length; ) {
    const colon = lines.indexOf(':', at)
    const end = lines.indexOf(LINE_END, colon)
    const name = lines.slice(at, colon).toLowerCase()
    // A name that every object has, such as `constructor`, counts as repeated.
    if (headers[name] !== undefined) return undefined
    headers[name] = lines.slice(colon + 2, end)
    at = end + LINE_END.length
  }
  return headers
}

function isPlain(headers: Headers): boolean {
  const { host, connection = 'keep-alive', 'content-length': length = '0' } = headers
  const isUsual = host !== undefined && LENGTH.test(length) && connection.toLowerCase() === 'keep-alive'
  return isUsual && NOT_PLAIN.every((name) => headers[name] === undefined)
}
