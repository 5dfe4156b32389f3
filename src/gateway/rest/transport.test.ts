import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { MALFORMED_REQUESTS } from '../../http/testing/malformed-requests.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

const head = (target: string, more: readonly string[] = [], method = 'POST'): string =>
  [`${method} ${target} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${CREDENTIALS.token}`, ...more, '', ''].join(
    '\r\n',
  )

const command = (...args: unknown[]): string => {
  const body = JSON.stringify(args)
  return head('/', [`Content-Length: ${Buffer.byteLength(body)}`]) + body
}

/** Sends bytes as they are. Resolves to everything received once it ends with `end`. */
async function exchange(pieces: readonly (string | Buffer)[], end: string): Promise<string> {
  const socket = createConnection(rig.gateway.restPort, '127.0.0.1')
  atCleanup(() => void socket.destroy())
  let received = ''
  socket.setEncoding('utf8').on('data', (text) => (received += String(text)))
  for (const piece of pieces) {
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await waitFor(() => received.endsWith(end), { what: `the end ${end}` })
  socket.destroy()
  return received
}

const bodiesOf = (received: string): readonly string[] =>
  received.split(/HTTP\/1\.1 \d+ [^\r]+\r\n(?:[^\r]+\r\n)+\r\n/).filter((body) => body !== '')

describe('requests on one connection', () => {
  it('that arrive together are answered in order, including wrong ones', async () => {
    const together = command('SET', 'a', 'ü') + command('GET', 'a') + command('NOSUCH') + head('/get/a', [], 'GET')
    const received = await exchange([together + command('ECHO', 'last')], '{"result":"last"}')
    expect(bodiesOf(received)).toEqual([
      '{"result":"OK"}',
      '{"result":"ü"}',
      `{"error":"ERR unknown command 'NOSUCH', with args beginning with: "}`,
      '{"result":"ü"}',
      '{"result":"last"}',
    ])
  })

  it('may arrive byte by byte, or with their bodies in pieces', async () => {
    const bytes = Buffer.from(command('ECHO', 'é€x'))
    const single = await exchange(
      [...bytes].map((byte) => Buffer.from([byte])),
      '{"result":"é€x"}',
    )
    expect(bodiesOf(single)).toEqual(['{"result":"é€x"}'])
    const long = command('ECHO', 'y'.repeat(200_000))
    const cuts = [0, 90, 170, 171, 65_000, 150_000, long.length]
    const pieces = cuts.slice(1).map((cut, index) => long.slice(cuts[index], cut))
    expect(bodiesOf(await exchange(pieces, 'y"}'))).toEqual([JSON.stringify({ result: 'y'.repeat(200_000) })])
  })

  it('may have chunked bodies, and an answer to HEAD has no body', async () => {
    const chunked = `${head('/', ['Transfer-Encoding: chunked'])}6\r\n["ECHO\r\n8\r\n","abc"]\r\n0\r\n\r\n`
    const received = await exchange([head('/get/none', [], 'HEAD') + chunked], '{"result":"abc"}')
    expect(received).toMatch(
      /^HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*Content-Length: 15\r\n(?:[^\r]+\r\n)*\r\nHTTP\/1\.1 200 OK\r\n/,
    )
  })

  it('have the same answers whether Node reads them or not', async () => {
    const mine = ['X-Request-Id: mine']
    const requests = (more: readonly string[]): readonly (readonly [request: string, end: string])[] => [
      [head('/set/same/%C3%BC', more, 'GET'), '}'],
      [head('/get/same', [...more, ...mine, 'Origin: https://example.com'], 'GET'), '}'],
      [head('/get/same', [...more, 'Upstash-Encoding: base64'], 'GET'), '}'],
      [head('/get/same', [...more, 'Upstash-Response-Format: resp2'], 'GET'), 'ü\r\n'],
      [head('/incr/same', [...more, ...mine], 'GET'), '}'],
      [head('/get/same', [...more, ...mine], 'GET').replace(CREDENTIALS.token, 'nope'), '}'],
      [head('/livez', more, 'GET'), '}'],
    ]
    const linesOf = (received: string): string[] =>
      received
        .replace(/^(date|upstash-sync-token): .*$/gim, '$1')
        .split('\r\n')
        .sort()
    const [plain, nodes] = await Promise.all(
      [[], ['TE: trailers']].map(async (more) => {
        const answers: string[][] = []
        for (const [request, end] of requests(more)) answers.push(linesOf(await exchange([request], end)))
        return answers
      }),
    )
    expect(plain).toEqual(nodes)
    expect(plain).toContainEqual(expect.arrayContaining(['Keep-Alive: timeout=75', '{"result":"ü"}']))
  })

  it('that are refused before their body has arrived leave the connection usable', async () => {
    const wrong = head('/').replace(CREDENTIALS.token, 'nope').replace('\r\n\r\n', '\r\nContent-Length: 14\r\n\r\n')
    const received = await exchange([wrong, '["ECHO', `,"abc"]x${command('PING')}`], '{"result":"PONG"}')
    expect(bodiesOf(received)).toEqual(['{"error":"WRONGPASS invalid or missing auth token"}', '{"result":"PONG"}'])
  })
})

it.each(MALFORMED_REQUESTS)('a request that two servers could read differently is refused: %s', async (_what, text) => {
  const bytes = text
    .replace('/', '/set/malformed/value')
    .replace(/(?=host:)/i, `Authorization: Bearer ${CREDENTIALS.token}\r\n`)
  const socket = createConnection(rig.gateway.restPort, '127.0.0.1', () => socket.write(bytes, 'latin1'))
  let received = ''
  socket.on('data', (part) => (received += String(part))).on('error', () => undefined)
  await once(socket, 'close')
  const answers = received.split(/^HTTP\/1\.1 /m).slice(1)
  expect(answers).toHaveLength(1)
  expect(answers[0]).toMatch(/^400 .*Connection: close.*{"error":"[^"]+"}$/s)
  expect(await exchange([head('/get/malformed', [], 'GET')], '}')).toContain('{"result":null}')
})

const MIB = 2 ** 20
const HUGE = 96 * MIB
const wrongHead = (more: readonly string[]): string => head('/set/huge', more).replace(CREDENTIALS.token, 'nope')
const WRONG = '{"error":"WRONGPASS invalid or missing auth token"}'

/** Sends a head and a body of `bytes`, and reads nothing until all of it is sent. */
async function pourThenRead(first: string, bytes: number): Promise<{ socket: Socket; received: () => string }> {
  const socket = createConnection(rig.gateway.restPort, '127.0.0.1').pause()
  atCleanup(() => void socket.destroy())
  socket.write(first)
  const piece = Buffer.alloc(MIB, 'x')
  for (let sent = 0; sent < bytes; sent += MIB) if (!socket.write(piece)) await once(socket, 'drain')
  let received = ''
  socket
    .setEncoding('utf8')
    .on('data', (text) => (received += String(text)))
    .resume()
  return { socket, received: () => received }
}

describe('a huge body', () => {
  it('with a wrong token is answered 401 even if the client reads only after it has sent everything', async () => {
    const { socket, received } = await pourThenRead(wrongHead([`Content-Length: ${HUGE}`]), HUGE)
    await waitFor(() => received().endsWith(WRONG), { what: 'the answer' })
    socket.write(command('ECHO', 'next'))
    await waitFor(() => received().endsWith('{"result":"next"}'), { what: 'the next answer' })
  })

  it('that is longer than the limit is answered 413 in the same way, chunked or not', async () => {
    const plain = await pourThenRead(head('/set/huge', [`Content-Length: ${HUGE}`]), HUGE)
    await waitFor(() => plain.received().includes('max request size exceeded'), { what: 'the answer' })
    const chunked = `${head('/set/huge', ['Transfer-Encoding: chunked'])}${HUGE.toString(16)}\r\n`
    const { received } = await pourThenRead(chunked, HUGE)
    await waitFor(() => received().includes('max request size exceeded'), { what: 'the answer' })
    expect(received()).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('gets 100 Continue, unless the token is wrong or it is too long', async () => {
    const ask = (first: string): Promise<string> => exchange([first], '"}')
    const expecting = ['Expect: 100-continue', `Content-Length: ${HUGE}`]
    expect(await ask(wrongHead(expecting))).toMatch(/^HTTP\/1\.1 401 /)
    expect(await ask(head('/set/huge', expecting))).toMatch(/^HTTP\/1\.1 413 /)
    const welcome = head('/echo', ['Expect: 100-continue', 'Content-Length: 1'])
    expect(await exchange([`${welcome}x`], '{"result":"x"}')).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  })
})

describe('the head of a request', () => {
  it('may contain the longest keys, and is refused beyond that', async () => {
    const key = 'k'.repeat(32_000)
    expect(await exchange([head(`/set/${key}/v`)], '{"result":"OK"}')).toMatch(/^HTTP\/1\.1 200 /)
    const end = 'Shorten them, or send the data in the body."}'
    expect(await exchange([head(`/set/${'k'.repeat(70_000)}/v`)], end)).toMatch(/^HTTP\/1\.1 431 /)
  })

  it('may contain an absolute target, as for a proxy', async () => {
    const pair = head('http://x:1/set/absolute/http:y') + head('HTTP://x/get/absolute', ['Connection: close'], 'GET')
    expect(bodiesOf(await exchange([pair], '{"result":"http:y"}'))[0]).toBe('{"result":"OK"}')
  })
})

describe('a token', () => {
  const ping = (): Promise<number> =>
    fetch(`${rig.restUrl}/ping`, { headers: { authorization: `Bearer ${CREDENTIALS.token}` } }).then(
      ({ status }) => status,
    )

  it('that was used is refused once its database is removed, and accepted when it is back', async () => {
    expect(await ping()).toBe(200)
    rig.directory.remove(rig.database.databaseId)
    expect(await ping()).toBe(401)
    rig.directory.put(rig.database)
    expect(await ping()).toBe(200)
    rig.directory.put({ ...rig.database, loginEpoch: 1 })
    expect(await ping()).toBe(200)
    rig.directory.put({ ...rig.database, allowedIpRanges: ['203.0.113.1'] })
    expect(await ping()).toBe(403)
  })
})
