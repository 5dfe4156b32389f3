import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { DatabaseMeter } from '../telemetry/index.js'
import type { Admission } from './deps.js'
import { patientFetch } from './testing/patient-fetch.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from './testing/rig.js'

const OPEN: Admission = { kind: 'open' }
let rig: Rig
const meter = new DatabaseMeter()

beforeAll(async () => {
  rig = await startRig({}, undefined, { usageOf: () => ({ meter, admission: { kind: 'open' } }) })
})

const restPort = (of: Rig = rig): number => Number(new URL(of.restUrl).port)
const AUTHORIZATION = `Authorization: Bearer ${CREDENTIALS.token}`

async function rest(
  of: Rig,
  body: unknown,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  const authorization = `Bearer ${CREDENTIALS.token}`
  return fetch(of.restUrl, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization, ...headers },
    signal,
  })
}

const resultOf = async (answer: Promise<Response>): Promise<unknown> =>
  ((await (await answer).json()) as { result?: unknown }).result

describe('request smuggling over HTTP', () => {
  const smuggled = `GET /set/smuggled/yes HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\n\r\n`
  const length = Buffer.byteLength(smuggled)
  const chunked = `${length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`
  const head = `POST /ping HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\n`

  it.each([
    ['two framings', `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ['two lengths', `${head}Content-Length: 0\r\nContent-Length: ${length}\r\n\r\n${smuggled}`],
    ['a list of lengths', `${head}Content-Length: 0, ${length}\r\n\r\n${smuggled}`],
    ['a signed length', `${head}Content-Length: +0\r\n\r\n${smuggled}`],
    ['an unknown framing', `${head}Transfer-Encoding: xchunked\r\n\r\n${chunked}`],
    ['a framing that is not last', `${head}Transfer-Encoding: chunked, identity\r\n\r\n${chunked}`],
    ['a space before the colon', `${head}Transfer-Encoding : chunked\r\n\r\n${smuggled}`],
    ['a folded header', `${head}X: y\r\n Content-Length: ${length}\r\n\r\n${smuggled}`],
    ['a bare line feed in a chunk', `${head}Transfer-Encoding: chunked\r\n\r\n0\n\n${smuggled}`],
    ['a chunk that is longer than it says', `${head}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n${smuggled}`],
  ])('with %s gets no second request served', async (_, bytes) => {
    const client = new RawClient(restPort())
    client.send(bytes)
    await client.expectClosed()
    expect(client.received).not.toContain('"OK"')
    expect(client.received.match(/HTTP\/1\.1 /g) ?? []).toHaveLength(1)
    expect(client.received).toMatch(/^HTTP\/1\.1 400 /)
    expect(await resultOf(rest(rig, ['GET', 'smuggled']))).toBeNull()
  })

  it('is distinguished from a valid pipeline of requests', async () => {
    const client = new RawClient(restPort())
    client.send(`${head}Content-Length: 0\r\n\r\n${head}Content-Length: 0\r\n\r\n`)
    await waitFor(() => client.received.split('{"result":"PONG"}').length === 3, { what: 'both answers' })
  })

  it('does not run a body that is a command of the Redis protocol', async () => {
    const client = await new RawClient(rig.port).login()
    client.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor(() => client.received !== '', { what: 'an answer' })
    const stranger = new RawClient(rig.port)
    stranger.send(`POST / HTTP/1.1\r\nHost: localhost\r\n\r\nAUTH ${CREDENTIALS.password}\r\nSET smuggled yes\r\n`)
    await stranger.expectClosed()
    expect(stranger.received).toBe('')
    expect(await resultOf(rest(rig, ['GET', 'smuggled']))).toBeNull()
  })
})

describe('slow clients', () => {
  it('are disconnected when they do not log in, whatever they send', async () => {
    const clock = new ManualClock()
    const impatient = await startRig({}, undefined, undefined, [], { clock, clientTimeoutMs: 300 })
    const silent = new RawClient(impatient.port)
    const dripping = new RawClient(impatient.port)
    const drip = setInterval(() => dripping.send('*'), 20)
    atCleanup(() => clearInterval(drip))
    const loggedIn = await new RawClient(impatient.port).login()
    // Their connections may be accepted later than that of the client that has logged in.
    const turns = setInterval(() => clock.advance(100), 20)
    atCleanup(() => clearInterval(turns))
    await Promise.all([silent.expectClosed(), dripping.expectClosed()])
    await loggedIn.send('PING\r\n').expect('+PONG\r\n')
  })

  it('are disconnected when the head of a request does not arrive', async () => {
    const impatient = await startRig({}, undefined, undefined, [], { clientTimeoutMs: 400 })
    const silent = new RawClient(restPort(impatient))
    silent.send('GET /ping HTTP/1.1\r\nX: ')
    const drip = setInterval(() => silent.send('y'), 50)
    atCleanup(() => clearInterval(drip))
    await silent.expectClosed()
    expect((await rest(impatient, ['PING'])).status).toBe(200)
  })

  it('use no more memory than the request limit', async () => {
    const client = await new RawClient(rig.port).login()
    const before = process.memoryUsage().arrayBuffers
    client.send('*3\r\n$3\r\nSET\r\n$1\r\na\r\n$400000000\r\n')
    const piece = Buffer.alloc(1_000_000, 'x')
    for (let i = 0; i < 60; i++) if (!client.socket.write(piece)) await once(client.socket, 'drain')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 2 ** 20)
    client.socket.destroy()
  })

  it('are disconnected once they have closed their side and no reply is pending', async () => {
    const [plain, subscribed, blocked] = await Promise.all([1, 2, 3].map(() => new RawClient(rig.port).login()))
    await subscribed?.send('SUBSCRIBE news\r\n').expect('*3\r\n')
    blocked?.send('BLPOP nothing 0\r\n')
    await waitFor(() => meter.holds === 2, { what: 'both lanes to be pinned or blocked' })
    for (const client of [plain, subscribed, blocked]) client?.socket.end()
    await Promise.all([plain, subscribed, blocked].map((client) => client?.expectClosed()))
    await waitFor(() => meter.holds === 0, { what: 'both lanes to be released' })
  })
})

describe('a storm of connections', () => {
  const ATTEMPTS = 900
  const AT_ONCE = 300
  const garbage = ['', 'PING\r\n', '\0\xff', '*1\r\n', 'GET / HTTP/1.1\r\n\r\n', '*99999999999\r\n', '$5\r\n']

  function attempt(index: number): Promise<void> {
    return new Promise((resolve) => {
      const socket: Socket = createConnection({ port: index % 3 === 0 ? restPort() : rig.port, host: '127.0.0.1' })
      socket.on('error', () => {})
      socket.on('close', () => resolve())
      socket.on('connect', () => {
        socket.write(garbage[index % garbage.length] ?? '')
        if (index % 2 === 0) socket.resetAndDestroy()
        else socket.end()
      })
      socket.resume()
    })
  }

  it('leaves nothing behind, and other clients are served meanwhile', async () => {
    const before = meter.connections
    const client = await new RawClient(rig.port).login()
    for (let from = 0; from < ATTEMPTS; from += AT_ONCE) {
      const storm = Promise.all(Array.from({ length: AT_ONCE }, (_, i) => attempt(from + i)))
      await client.send('PING\r\n').expect('+PONG\r\n')
      expect(await resultOf(rest(rig, ['PING']))).toBe('PONG')
      await storm
    }
    client.socket.destroy()
    await waitFor(() => meter.connections === before, { what: 'every connection to be uncounted' })
    expect(meter.connectionsTotal).toBeGreaterThan(ATTEMPTS / 2)
    expect(rig.complaints).toEqual([])
  })
})

describe('a client that guesses passwords or tokens', () => {
  it('has to wait over TCP, also on new connections, and not after a success', async () => {
    const guessed = await startRig()
    const wrong = '-WRONGPASS invalid username-password pair or user is disabled.\r\n'
    const client = new RawClient(guessed.port)
    await client.send('AUTH nope\r\n'.repeat(5)).expect(wrong.repeat(5))
    const before = performance.now()
    await client.send('AUTH nope\r\n'.repeat(2)).expect(wrong.repeat(2))
    const other = new RawClient(guessed.port)
    await other.send(`AUTH ${CREDENTIALS.password}\r\n`).expect('+OK\r\n')
    // Delays of 100 and 200 ms lie between them; timers may fire a little early.
    expect(performance.now() - before).toBeGreaterThan(280)
    await client.send('AUTH nope\r\nHELLO 2 AUTH default nope\r\n').expect(wrong.repeat(2))
  })

  it('has to wait over HTTP, while valid tokens are served at once', async () => {
    const clock = new ManualClock()
    const guessed = await startRig({}, undefined, undefined, [], { clock })
    const guess = (signal?: AbortSignal): Promise<Response> =>
      rest(guessed, ['PING'], { authorization: 'Bearer nope' }, signal)
    await Promise.all(Array.from({ length: 5 }, () => guess()))
    let answered = 0
    const late = Array.from({ length: 4 }, () => guess().then(({ status }) => (answered += status === 401 ? 1 : 0)))
    for (let i = 0; i < 5; i++) expect(await resultOf(rest(guessed, ['PING']))).toBe('PONG')
    expect(answered).toBeLessThan(4)
    const turn = (): boolean => {
      clock.advance(100)
      return answered === 4
    }
    await waitFor(turn, { what: 'the guesses to be answered' })
    await Promise.all(late)
    const abort = new AbortController()
    const statuses: number[] = []
    const many = Array.from({ length: 40 }, () => guess(abort.signal).then(({ status }) => statuses.push(status)))
    await waitFor(() => statuses.includes(429), { what: 'one to be refused' })
    abort.abort()
    await Promise.allSettled(many)
  })

  it('gets the error, however large the request is', async () => {
    const body = Buffer.alloc(20_000_000, 'x')
    for (let i = 0; i < 3; i++) {
      const answer = await fetch(rig.restUrl, { method: 'POST', body, headers: { authorization: 'Bearer nope' } })
      expect(answer.status).toBe(401)
    }
  })
})

describe('the client address behind a proxy', () => {
  const from = (of: Rig, forwarded: string): Promise<Response> => rest(of, ['PING'], { 'x-forwarded-for': forwarded })

  it('comes from a trusted proxy only', async () => {
    const ranges = { allowedIpRanges: ['203.0.113.0/24'] }
    const trusting = await startRig(ranges, undefined, undefined, [], { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
    expect((await from(trusting, '203.0.113.9')).status).toBe(200)
    expect((await from(trusting, '198.51.100.1, 203.0.113.9, 10.1.2.3')).status).toBe(200)
    expect((await from(trusting, '203.0.113.9, 198.51.100.1')).status).toBe(403)
    expect((await from(trusting, '203.0.113.9, nonsense')).status).toBe(403)
    expect((await rest(trusting, ['PING'])).status).toBe(403)
    const doubting = await startRig(ranges)
    expect((await from(doubting, '203.0.113.9')).status).toBe(403)
  })
})

it('transactions over REST never mix, however many run at once', async () => {
  const transaction = (index: number) =>
    patientFetch(`${rig.restUrl}/multi-exec`, {
      method: 'POST',
      headers: { authorization: `Bearer ${CREDENTIALS.token}` },
      body: JSON.stringify([
        ['INCR', 'turn'],
        ['SET', 'holder', `holder-${index}`],
        ['INCR', `count-${index % 10}`],
        ['GET', 'holder'],
        ['INCR', 'turn'],
      ]),
    })
  // Each has a connection to the engine of its own; a busy engine does not accept all of them within a second.
  const answers: Awaited<ReturnType<typeof transaction>>[] = []
  for (let from = 0; from < 400; from += 200)
    answers.push(...(await Promise.all(Array.from({ length: 200 }, (_, index) => transaction(from + index)))))
  const turns = new Set<number>()
  for (const [index, answer] of answers.entries()) {
    const [first, , , holder, last] = ((await answer.json()) as { result: unknown }[]).map(({ result }) => result)
    expect(holder).toBe(`holder-${index}`)
    expect(Number(last) - Number(first)).toBe(1)
    turns.add(Number(first))
  }
  expect(turns.size).toBe(400)
  expect(await resultOf(rest(rig, ['GET', 'turn']))).toBe('800')
})

it('a fault in a command closes its connection, and no other', async () => {
  const usage: { meter: DatabaseMeter; admission: Admission } = { meter: new DatabaseMeter(), admission: OPEN }
  const faulty = await startRig({}, undefined, { usageOf: () => usage })
  const [first, other] = [await new RawClient(faulty.port).login(), await new RawClient(faulty.port).login()]
  Object.defineProperty(usage, 'admission', {
    configurable: true,
    get: () => {
      throw new Error('the test says so')
    },
  })
  first.send('PING\r\n')
  await first.expectClosed()
  Object.defineProperty(usage, 'admission', { value: OPEN })
  await other.send('PING\r\n').expect('+PONG\r\n')
  expect(faulty.complaints).toEqual(['a client was disconnected: its command caused an internal error'])
})

it('a fault in a request that waited for its token is answered, and affects no other', async () => {
  const faultyMeter = new DatabaseMeter()
  Object.defineProperty(faultyMeter, 'readLatency', {
    get: () => {
      throw new Error('the test says so')
    },
  })
  const usage = { usageOf: () => ({ meter: faultyMeter, admission: OPEN }) }
  const faulty = await startRig({ maxCommandsPerSecond: 1 }, undefined, usage)
  const answers = await Promise.all([rest(faulty, ['PING']), rest(faulty, ['PING'])])
  expect(answers.map(({ status }) => status)).toEqual([500, 500])
})
