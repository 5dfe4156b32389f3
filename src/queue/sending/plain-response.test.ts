import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readerOf } from './body-reader.js'
import { ContinuedResponse } from './continued-response.js'
import { type IncomingHeaders, OutgoingRequest } from './outgoing-request.js'
import { PlainResponseHeads } from './plain-response.js'

/** What a parser finds in bytes. `incomplete`: the response goes on behind them. */
type Found =
  | { readonly status: number; readonly headers: IncomingHeaders; readonly body: string }
  | 'incomplete'
  | 'malformed'

/** Reads a response as a plain one, in two pieces. Undefined when it is none. */
function readPlainly(heads: PlainResponseHeads, text: string, cut: number): Found | undefined {
  const head = heads.read(text)
  if (!head || head === 'incomplete') return head
  const { status, headers, headBytes } = head
  const reader = readerOf(head.body)
  let body = ''
  for (const piece of [text.slice(headBytes, headBytes + cut), text.slice(headBytes + cut)]) {
    const end = reader.read(Buffer.from(piece, 'latin1'), (part) => (body += part.toString('latin1')))
    if (end === 'malformed') return end
    if (end !== 'more') return { status, headers: { ...headers }, body }
  }
  return 'incomplete'
}

const SILENT_SOURCE = { pause: () => undefined, resume: () => undefined, destroy: () => undefined }

/** Reads a response with undici, as one that is not plain. */
function readByUndici(text: string): Promise<Found> {
  return new Promise((resolve) => {
    let status = 0
    let headers: IncomingHeaders = {}
    let body = ''
    const handler = {
      onRequestStart: () => undefined,
      onResponseStart: (_controller: unknown, code: number, found: IncomingHeaders) => {
        status = code
        headers = found
      },
      onResponseData: (_controller: unknown, chunk: Buffer) => {
        body += chunk.toString('latin1')
      },
      onResponseEnd: () => resolve({ status, headers: { ...headers }, body }),
      onResponseError: (_controller: unknown, error: Error) =>
        resolve('code' in error && error.code === 'UND_ERR_SOCKET' ? 'incomplete' : 'malformed'),
    }
    const request = new OutgoingRequest('http://127.0.0.1:1', '/', { method: 'GET', headers: [], body: undefined })
    new ContinuedResponse(request, handler, SILENT_SOURCE, Buffer.from(text, 'latin1')).end(undefined)
  })
}

const linesOf = (lines: readonly string[]): string => [...lines, '', ''].join('\r\n')
const USUAL = ['Content-Type: text/plain', 'Date: Mon, 30 Nov 2026 12:00:00 GMT', 'Connection: keep-alive']
const answered = (body: string, more: readonly string[] = USUAL): string =>
  linesOf(['HTTP/1.1 200 OK', ...more, `Content-Length: ${body.length}`]) + body
const CHUNKED = `${linesOf(['HTTP/1.1 200 OK', ...USUAL, 'Transfer-Encoding: chunked'])}4\r\nfour\r\n2;a=b\r\nok\r\n0\r\n\r\n`

/** Extensions of chunks and trailers, in which undici refuses what means nothing here. */
const ASIDE = /^[0-9a-f]+[;\t ]|\n0+\r\n[^\r]/im

describe('a plain response', () => {
  it('is read with its headers, its body, and how long its connection may stay', () => {
    const heads = new PlainResponseHeads()
    const first = answered('ok', [...USUAL, 'Keep-Alive: timeout=5', 'Set-Cookie: a=1', 'Set-Cookie: b=2'])
    expect(heads.read(first)).toEqual({
      status: 200,
      headers: {
        __proto__: null,
        'content-type': 'text/plain',
        date: 'Mon, 30 Nov 2026 12:00:00 GMT',
        connection: 'keep-alive',
        'keep-alive': 'timeout=5',
        'set-cookie': ['a=1', 'b=2'],
        'content-length': '2',
      },
      headBytes: first.length - 2,
      body: { kind: 'length', bytes: 2 },
      keepSeconds: 3,
    })
    expect(heads.read(first)).toBe(heads.read(`${first}more`))
    expect(heads.read(CHUNKED)).toMatchObject({ body: { kind: 'chunked' }, keepSeconds: 4 })
    expect(heads.read(answered('', ['Connection: close']))).toMatchObject({ keepSeconds: 0 })
    expect(heads.read(linesOf(['HTTP/1.1 204 No Content', ...USUAL]))).toMatchObject({ body: { bytes: 0 } })
  })

  it('is incomplete before its empty line', () => {
    const { length } = answered('')
    for (const bytes of [0, 5, 12, 40, length - 1])
      expect(new PlainResponseHeads().read(answered('').slice(0, bytes))).toBe('incomplete')
  })

  it.each([
    ['no length', linesOf(['HTTP/1.1 200 OK', ...USUAL])],
    ['a second length', answered('', [...USUAL, 'Content-Length: 0'])],
    ['a length and chunks', answered('', [...USUAL, 'Transfer-Encoding: chunked'])],
    ['another encoding', linesOf(['HTTP/1.1 200 OK', 'Transfer-Encoding: gzip, chunked'])],
    ['a length without a body', linesOf(['HTTP/1.1 304 Not Modified', 'Content-Length: 5'])],
    ['a status before the real one', linesOf(['HTTP/1.1 103 Early Hints', 'Link: a', '', 'HTTP/1.1 200 OK'])],
    ['a letter before its version', `a${answered('')}`],
    ['a status of four digits', answered('').replace('200', '2000')],
    ['a length with a sign', answered('').replace('Length: 0', 'Length: +0')],
    ['an empty length', answered('').replace('Length: 0', 'Length: ')],
    ['HTTP/1.0', answered('').replace('1.1', '1.0')],
    ['an upgrade', answered('', ['Connection: upgrade', 'Upgrade: h2c'])],
    ['a protocol to upgrade to', answered('', ['Upgrade: h2c'])],
    ['trailers', CHUNKED.replace('Date:', 'Trailer:')],
    ['a folded header', answered('', ['A: b', ' c'])],
    ['a line that ends without CR', answered('').replace('plain\r\n', 'plain\n')],
    ['a space before the colon', answered('', ['A : b'])],
    ['a byte that is no ASCII', answered('', ['A: ü'])],
    ['an endless head', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(4_000)}`],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ])('is none with %s, also after a plain one', (_what, text) => {
    expect(new PlainResponseHeads().read(text)).toBeUndefined()
    const heads = new PlainResponseHeads()
    heads.read(answered('ok'))
    expect(heads.read(text)).toBeUndefined()
  })

  it.each([
    ['a size that is no number', 'x\r\n'],
    ['a negative size', '-1\r\n'],
    ['a size that ends without CR', '4\nfour\r\n'],
    ['data that is longer than its size', '2\r\nfour\r\n'],
    ['an endless size', '1'.repeat(5_000)],
    ['endless trailers', `0\r\n${'A: b\r\n'.repeat(6_000)}`],
  ])('is malformed with %s', (_what, chunks) => {
    const head = CHUNKED.slice(0, CHUNKED.indexOf('4\r\nfour'))
    expect(readPlainly(new PlainResponseHeads(), head + chunks, 1)).toBe('malformed')
  })

  it('costs no more calls when its chunks are small', () => {
    const parts: string[] = []
    const reader = readerOf({ kind: 'chunked' })
    const chunks = Buffer.from(`${'1\r\nx\r\n'.repeat(10_000)}0\r\n\r\nmore`)
    expect(reader.read(chunks, (part) => void parts.push(part.toString()))).toBe(chunks.length - 'more'.length)
    expect(parts).toEqual(['x'.repeat(10_000)])
  })

  it('means the same to undici, whatever is changed in it', async () => {
    const pieces = fc.constantFrom(
      ...[
        '\r\n',
        '\n',
        '\r',
        ' ',
        ': ',
        ':',
        ';',
        '\t',
        '0',
        '1',
        'f',
        '+',
        ',',
        'a',
        'ÿ',
        '\0',
        '\r\n\r\n',
        'HTTP/1.1',
      ],
      ...['Content-Length: 3\r\n', 'Content-Length: 0\r\n', 'Transfer-Encoding: chunked\r\n', 'Connection: close\r\n'],
      ...[
        'Set-Cookie: a=b\r\n',
        'HTTP/1.1 100 Continue\r\n\r\n',
        'toString: 1\r\n',
        'Trailer: a\r\n',
        '204',
        '304',
        '199',
      ],
    )
    const change = fc.record({ at: fc.nat(180), cut: fc.nat(6), piece: fc.option(pieces, { nil: '' }) })
    const base = fc.constantFrom(answered('hello'), CHUNKED)
    let plain = 0
    const property = fc.asyncProperty(
      base,
      fc.array(change, { maxLength: 3 }),
      fc.nat(12),
      async (first, changes, cut) => {
        const text = changes.reduce(
          (past, { at, cut, piece }) => past.slice(0, at) + piece + past.slice(at + cut),
          first,
        )
        const read = readPlainly(new PlainResponseHeads(), text, cut)
        const heads = new PlainResponseHeads()
        heads.read(first)
        expect(readPlainly(heads, text, cut)).toEqual(read)
        if (read === undefined || new PlainResponseHeads().read(text) === 'incomplete') return
        plain++
        const found = await readByUndici(text)
        if (found === 'malformed' && ASIDE.test(text.slice(text.indexOf('\r\n\r\n')))) return
        expect(found).toEqual(read)
      },
    )
    await fc.assert(property, { numRuns: 1_000 })
    expect(plain).toBeGreaterThan(100)
  })
})
