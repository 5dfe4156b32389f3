import { createServer, type IncomingHttpHeaders } from 'node:http'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MALFORMED_REQUESTS } from '../testing/malformed-requests.js'
import { PlainHeads } from './plain-head.js'

/** What a parser finds in a request. */
interface Found {
  readonly method: string | undefined
  readonly target: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Reads the request with Node's parser. Undefined when it is refused, or not whole. */
function readByNode(text: string): Promise<Found | undefined> {
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  const server = createServer()
  return new Promise((resolve) => {
    server.on('clientError', () => resolve(undefined))
    connection.on('close', () => resolve(undefined))
    server.on('request', async (request, response) => {
      const { method, url: target, headers } = request
      try {
        const body = Buffer.concat(await request.toArray()).toString('latin1')
        resolve({ method, target, headers, body })
      } catch {
        resolve(undefined)
      }
      response.end()
    })
    server.emit('connection', connection)
    connection.push(Buffer.from(text, 'latin1'))
    // A request that Node takes for the beginning of a longer one never ends by itself.
    setImmediate(() => setImmediate(() => connection.destroy()))
  })
}

/** Reads the request as a plain one. Undefined when it is none. */
function readPlainly(heads: PlainHeads, text: string): Found | undefined {
  const head = heads.read(text)
  if (!head || head === 'incomplete' || head.headBytes + head.bodyBytes !== text.length) return undefined
  const { method, target, headers, headBytes } = head
  return { method, target, headers: { ...headers }, body: text.slice(headBytes) }
}

const linesOf = (lines: readonly string[]): string => [...lines, '', ''].join('\r\n')

const FETCHED = ['Host: localhost:8701', 'connection: keep-alive', 'authorization: Bearer abc', 'accept: */*']

const posted = (body: string, more: readonly string[] = FETCHED): string =>
  linesOf(['POST /pipeline HTTP/1.1', ...more, `content-length: ${body.length}`]) + body

describe('a plain head', () => {
  it('is read with its headers, and the length of its body', () => {
    const heads = new PlainHeads()
    expect(heads.read(`${posted('["PING"]')} and more`)).toEqual({
      method: 'POST',
      target: '/pipeline',
      headers: {
        host: 'localhost:8701',
        connection: 'keep-alive',
        authorization: 'Bearer abc',
        accept: '*/*',
        'content-length': '8',
      },
      headBytes: posted('').length,
      bodyBytes: 8,
    })
    expect(heads.read(linesOf(['GET /get/a HTTP/1.1', 'Host: x']))).toMatchObject({ method: 'GET', bodyBytes: 0 })
  })

  it('may differ from the one before in its target, and in the length of its body', () => {
    const heads = new PlainHeads()
    for (const body of ['[1]', '', 'x'.repeat(1_000), '[2]'])
      expect(readPlainly(heads, posted(body))).toMatchObject({
        body,
        headers: { 'content-length': String(body.length) },
      })
    expect(heads.read(posted('').replace('/pipeline', '/'))).toMatchObject({ target: '/' })
    expect(heads.read(posted('').replace('Bearer abc', 'Bearer abd'))).toMatchObject({
      headers: { authorization: 'Bearer abd' },
    })
  })

  it('has its own headers, although it begins like the one before, which had no length', () => {
    const heads = new PlainHeads()
    const got = (more: readonly string[]) => heads.read(linesOf(['GET / HTTP/1.1', ...FETCHED, ...more]))
    for (const before of [[], []]) expect(got(before)).toMatchObject({ bodyBytes: 0 })
    expect(got(['x-a: b'])).toMatchObject({ headers: { 'x-a': 'b' } })
    expect(got([])).not.toHaveProperty('headers.x-a')
    expect(got(['content-length: 3'])).toMatchObject({ bodyBytes: 3 })
    expect(got([])).toMatchObject({ bodyBytes: 0 })
    expect(got(['transfer-encoding: chunked'])).toBeUndefined()
  })

  it('has the length of its body from the header of that name only', () => {
    const heads = new PlainHeads()
    for (const other of ['7', '8'])
      expect(heads.read(posted('[1]', [...FETCHED, `x-content-length: ${other}`]))).toMatchObject({
        headers: { 'x-content-length': other, 'content-length': '3' },
        bodyBytes: 3,
      })
  })

  it('is incomplete before its empty line', () => {
    for (const bytes of [5, 30, posted('').length - 1])
      expect(new PlainHeads().read(posted('').slice(0, bytes))).toBe(bytes < 6 ? undefined : 'incomplete')
  })

  it.each([
    ['no host', linesOf(['GET / HTTP/1.1', 'accept: */*'])],
    ['another method', posted('').replace('POST', 'PUT')],
    ['a letter before its method', `a${posted('')}`],
    ['HTTP/1.0', posted('').replace('1.1', '1.0')],
    ['an absolute target', posted('').replace('/pipeline', 'http://x/pipeline')],
    ['a repeated header', posted('', [...FETCHED, 'Accept: a'])],
    ['a second length', posted('', [...FETCHED, 'content-length: 0'])],
    ['a length with a sign', posted('').replace('length: 0', 'length: +0')],
    ['a body in chunks', posted('', [...FETCHED, 'transfer-encoding: chunked'])],
    ['an expectation', posted('', [...FETCHED, 'expect: 100-continue'])],
    ['an upgrade', posted('', [...FETCHED, 'upgrade: websocket'])],
    ['the last request', posted('', ['host: x', 'connection: close'])],
    ['a folded header', posted('', [...FETCHED, 'a: b', ' c'])],
    ['a line that ends without CR', posted('').replace('*/*\r\n', '*/*\n')],
    ['a space before the colon', posted('', [...FETCHED, 'a : b'])],
    ['a byte that is no ASCII', posted('', [...FETCHED, 'a: ü'])],
    ['an empty value', posted('', [...FETCHED, 'a: '])],
    ['the name of a method of objects', posted('', [...FETCHED, 'constructor: x'])],
    ['a beginning of another kind', 'PUT'],
  ])('is none with %s, also after a plain one', (_what, text) => {
    expect(new PlainHeads().read(text)).toBeUndefined()
    const heads = new PlainHeads()
    heads.read(posted('[1]'))
    expect(heads.read(text)).toBeUndefined()
  })

  it('is none that two servers could read differently', () => {
    for (const [what, text] of MALFORMED_REQUESTS)
      expect([what, new PlainHeads().read(text)]).toEqual([what, undefined])
  })

  it('means the same to Node, whatever is changed in it', async () => {
    const pieces = fc.constantFrom(
      ...['\r\n', '\n', '\r', ' ', ': ', ':', '\t', '0', '1', '+', ',', 'a', 'ÿ', '\0', '\r\n\r\n', 'HTTP/1.1', '/'],
      ...[
        'content-length: 3\r\n',
        'Content-Length: 0\r\n',
        'transfer-encoding: chunked\r\n',
        'host: y\r\n',
        'x-a: b\r\n',
      ],
      ...['connection: close\r\n', 'GET / HTTP/1.1\r\n', 'toString: 1\r\n', '__proto__: 1\r\n', '=', '%0d', '_: 1\r\n'],
    )
    const change = fc.record({ at: fc.nat(200), cut: fc.nat(6), piece: fc.option(pieces, { nil: '' }) })
    let plain = 0
    const property = fc.asyncProperty(fc.array(change, { maxLength: 3 }), async (changes) => {
      const first = posted('[1]')
      const text = changes.reduce((past, { at, cut, piece }) => past.slice(0, at) + piece + past.slice(at + cut), first)
      const read = readPlainly(new PlainHeads(), text)
      const heads = new PlainHeads()
      heads.read(first)
      expect(readPlainly(heads, text)).toEqual(read)
      if (!read) return
      plain++
      expect(await readByNode(text)).toEqual(read)
    })
    await fc.assert(property, { numRuns: 1_000 })
    expect(plain).toBeGreaterThan(100)
  })
})
