import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { ClientMemoryBudget, type MemoryConsumer } from '../../base/index.js'
import { usedBytes } from '../../base/testing/memory.js'
import { ENGINE_PASSWORDS } from '../testing/engine.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

const MIB = 2 ** 20
const LIMIT_BYTES = 200 * MIB
const PIECE = Buffer.alloc(64 * 1024, 'x')
const CRLF = Buffer.from('\r\n')
/** The engine closes a connection with more unread replies than this. */
const ENGINE_SETTINGS = ['--client-output-buffer-limit', 'normal', `${300 * MIB}`, '0', '0']

let rig: Rig
let engine: RawClient

beforeAll(async () => {
  rig = await startRig({ maxRequestBytes: LIMIT_BYTES, maxEntryBytes: 128 * MIB })
  engine = await new RawClient(rig.port).login()
})

/** A request whose body of `bytes` bytes is still to be sent. */
function begin(path: string, bytes: number, headers: Record<string, string> = {}): ClientRequest {
  const length = bytes > 0 ? { 'content-length': String(bytes) } : {}
  const sent = request(rig.restUrl + path, {
    method: 'POST',
    // A connection with an incomplete body cannot carry the next request.
    agent: false,
    headers: { authorization: `Bearer ${CREDENTIALS.token}`, ...length, ...headers },
  })
  return sent.on('error', () => {})
}

async function pour(to: ClientRequest, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= PIECE.length) {
    if (!to.write(left < PIECE.length ? PIECE.subarray(0, left) : PIECE)) await once(to, 'drain')
  }
}

async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  sent.end()
  return (await answered)[0]
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of answer) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}

/** Reads a number in INFO of an engine, which it is asked for past the gateway. */
function infoOf({ engine: { socketPath } }: Rig): (section: string, pattern: RegExp) => Promise<number> {
  const login = { username: 'observer', password: ENGINE_PASSWORDS.observer }
  const observer = new Redis({ path: socketPath, ...login, enableReadyCheck: false })
  atCleanup(() => observer.disconnect())
  return async (section, pattern) => Number(pattern.exec(await observer.info(section))?.[1])
}

const run = async (path: string, headers = {}): Promise<string> => textOf(await answerTo(begin(path, 0, headers)))

describe('a large body behind a path', () => {
  it('is passed to the engine while it arrives and never held as a whole', async () => {
    const bytes = 48 * MIB
    const before = usedBytes()
    const sent = begin('/set/a?EX=1000', bytes)
    let most = 0
    for (let part = 0; part < 4; part++) {
      expect(await run('/exists/a')).toBe('{"result":0}')
      await pour(sent, bytes / 4)
      if (part % 2 === 1) most = Math.max(most, usedBytes())
    }
    expect(await textOf(await answerTo(sent))).toBe('{"result":"OK"}')
    expect(most - before).toBeLessThan(24 * MIB)
    expect(await run('/strlen/a')).toBe(`{"result":${bytes}}`)
    expect(Number(/\d+/.exec(await run('/ttl/a'))?.[0])).toBeGreaterThan(900)
  })

  it('may be the last of several values, a part of a value, or an argument of a script', async () => {
    const cases = [
      ['/mset/one/1/b', '{"result":"OK"}'],
      ['/setrange/c/5', `{"result":${2 * MIB + 5}}`],
      ['/rpush/list/first', '{"result":2}'],
      [`/eval/${encodeURIComponent("return redis.call('SETEX', KEYS[1], 100, ARGV[1])")}/1/d`, '{"result":"OK"}'],
      ['/publish/nobody', '{"result":0}'],
    ]
    for (const [path, expected] of cases) {
      const sent = begin(path ?? '', 2 * MIB)
      await pour(sent, 2 * MIB)
      expect(await textOf(await answerTo(sent))).toBe(expected)
    }
    for (const key of ['b', 'd']) expect(await run(`/strlen/${key}`)).toBe(`{"result":${2 * MIB}}`)
  })

  it('is refused before it arrives when it breaks a limit, and is accepted without a declared length', async () => {
    const entry = begin('/set/a', 130 * MIB)
    const refused = await answerTo(entry)
    expect(refused.statusCode).toBe(400)
    expect(await textOf(refused)).toContain('ERR max single record size exceeded. Limit: ')
    const chunked = begin('/set/chunked', 2 * MIB, { 'transfer-encoding': 'chunked' })
    chunked.removeHeader('content-length')
    await pour(chunked, 2 * MIB)
    expect(await textOf(await answerTo(chunked))).toBe('{"result":"OK"}')
  })

  it('leaves nothing behind when its client disconnects halfway', async () => {
    const sent = begin('/set/half', 8 * MIB)
    await pour(sent, 4 * MIB)
    sent.destroy()
    await waitFor(() => rig.gateway.releaseEngines('db-one', 'when-unused'), { what: 'its connection to be closed' })
    await engine.send('EXISTS half\r\n').expect(':0\r\n')
  })

  it('is answered with an error when the engine is lost halfway', async () => {
    const other = await startRig({ maxRequestBytes: LIMIT_BYTES })
    const sent = request(`${other.restUrl}/set/a`, {
      method: 'POST',
      headers: { authorization: `Bearer ${CREDENTIALS.token}`, 'content-length': String(8 * MIB) },
    })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    const { meter } = other.gateway.usageOf('db-one') ?? {}
    await pour(sent, 4 * MIB)
    await waitFor(() => (meter?.month.requests ?? 0) > 0, { what: 'the command to be sent' })
    await other.engine.kill()
    // A client that has its answer may never see that the socket is writable again, so the rest is sent without waiting.
    sent.end(Buffer.alloc(4 * MIB))
    const [answer] = await answered
    expect(answer.statusCode).toBe(503)
    expect(await textOf(answer)).toContain('Nothing was applied')
  })
})

describe('a large reply', () => {
  const text = `a "quoted" line\n${'ä€😀'.repeat(300_000)}`

  it('has the same content in every form as a small one', async () => {
    await engine.send(`SETRANGE large 0 "${'x'.repeat(10)}"\r\n`).expect(':10\r\n')
    const bytes = Buffer.from(text)
    const sent = begin('/set/large', bytes.length)
    sent.write(bytes)
    expect(await textOf(await answerTo(sent))).toBe('{"result":"OK"}')
    expect(JSON.parse(await run('/get/large'))).toEqual({ result: text })
    const encoded = JSON.parse(await run('/get/large', { 'upstash-encoding': 'base64' })) as { result: string }
    expect(Buffer.from(encoded.result, 'base64').equals(bytes)).toBe(true)
    const resp = await run('/get/large', { 'upstash-response-format': 'resp2' })
    expect(resp).toBe(`$${bytes.length}\r\n${text}\r\n`)
  })

  it('keeps its place among the replies of a pipeline', async () => {
    const [one, two] = ['x'.repeat(1.5 * MIB), 'ä'.repeat(MIB)]
    for (const [key, value] of [
      ['one', one],
      ['two', two],
    ]) {
      const sent = begin(`/set/${key}`, Buffer.byteLength(value ?? ''))
      sent.write(value)
      await textOf(await answerTo(sent))
    }
    const commands = [
      ['PING'],
      ['GET', 'one'],
      ['NOSUCH'],
      ['GET', 'two'],
      ['GET', 'two'],
      ['MGET', 'one', 'none'],
      ['GET'],
      ['ECHO', 'e'],
    ]
    const pipeline = async (headers: Record<string, string> = {}): Promise<string> => {
      const body = JSON.stringify(commands)
      const sent = begin('/pipeline', body.length, headers)
      sent.write(body)
      return textOf(await answerTo(sent))
    }
    const wrong = { error: "ERR wrong number of arguments for 'get' command" }
    const unknown = { error: "ERR unknown command 'NOSUCH', with args beginning with: " }
    const big = [
      { result: one },
      unknown,
      { result: two },
      { result: two },
      { result: [one, null] },
      wrong,
      { result: 'e' },
    ]
    expect(JSON.parse(await pipeline())).toEqual([{ result: 'PONG' }, ...big])
    const encoded = JSON.parse(await pipeline({ 'upstash-encoding': 'base64' })) as { result: string }[]
    expect(
      encoded.map(({ result }) => (typeof result === 'string' ? Buffer.from(result, 'base64').length : 0)),
    ).toEqual([...[4, one.length, 0, 2 * MIB, 2 * MIB, 0, 0, 1]])
    const bulk = (value: string): string => `$${Buffer.byteLength(value)}\r\n${value}\r\n`
    expect(await pipeline({ 'upstash-response-format': 'resp2' })).toBe(
      `+PONG\r\n${bulk(one)}-${unknown.error}\r\n${bulk(two)}${bulk(two)}*2\r\n${bulk(one)}$-1\r\n-${wrong.error}\r\n${bulk('e')}`,
    )
  })

  it('is never held as a whole', async () => {
    await engine.send(`SETRANGE long ${40 * MIB - 1} x\r\n`).expect(`:${40 * MIB}\r\n`)
    const forms: Record<string, string>[] = [{ 'upstash-encoding': 'base64' }, { 'upstash-response-format': 'resp2' }]
    for (const headers of forms) {
      const atFirst = usedBytes()
      let most = 0
      let bytes = 0
      for await (const piece of await answerTo(begin('/get/long', 0, headers))) {
        const before = bytes
        bytes += (piece as Buffer).length
        if (Math.floor(bytes / (16 * MIB)) > Math.floor(before / (16 * MIB))) most = Math.max(most, usedBytes())
      }
      expect(bytes).toBeGreaterThan(40 * MIB)
      // The unread part may wait in the answer, once. A reply that is held as a whole would be there twice.
      expect(most - atFirst).toBeLessThan(48 * MIB)
    }
  })

  it('is broken off when the engine is lost halfway', async () => {
    const other = await startRig({ maxRequestBytes: LIMIT_BYTES })
    const raw = await new RawClient(other.port).login()
    await raw.send(`SETRANGE long ${32 * MIB - 1} x\r\n`).expect(`:${32 * MIB}\r\n`)
    const sent = request(`${other.restUrl}/get/long`, { headers: { authorization: `Bearer ${CREDENTIALS.token}` } })
    const answer = await answerTo(sent)
    const closed = new Promise((resolve) => answer.on('error', () => {}).on('close', resolve))
    await once(answer, 'readable')
    await other.engine.kill()
    answer.resume()
    await closed
    expect(answer.complete).toBe(false)
    // A command that is not settled counts as running: then the gateway would search for a script.
    expect(other.gateway.usageOf('db-one')?.meter.readLatency.count).toBe(1)
  })
})

describe('many large replies of one request', () => {
  const COMMANDS = 200
  const times = (key: string): string => JSON.stringify(Array.from({ length: COMMANDS }, () => ['GET', key]))
  let other: Rig
  let client: RawClient

  beforeAll(async () => {
    other = await startRig({ maxRequestBytes: 10 * MIB }, undefined, undefined, ENGINE_SETTINGS)
    client = await new RawClient(other.port).login()
    const value = Buffer.alloc(2 * MIB, 'v')
    client.send(Buffer.concat([Buffer.from(`*3\r\n$3\r\nSET\r\n$1\r\na\r\n$${value.length}\r\n`), value, CRLF]))
    await client.expect('+OK\r\n')
  })

  const send = (path: string, body: string): ClientRequest => {
    const headers = {
      authorization: `Bearer ${CREDENTIALS.token}`,
      'content-length': String(body.length),
      'upstash-response-format': 'resp2',
    }
    const sent = request(other.restUrl + path, { method: 'POST', agent: false, headers })
    sent.write(body)
    return sent.on('error', () => {})
  }

  it('are requested from the engine a few at a time, beside others, and wait for a client that reads slowly', async () => {
    const answer = await answerTo(send('/pipeline', times('a')))
    await client.send('PING\r\n').expect('+PONG\r\n')
    let bytes = 0
    for await (const piece of answer) bytes += (piece as Buffer).length
    expect(bytes).toBe(COMMANDS * (2 * MIB + `$${2 * MIB}\r\n\r\n`.length))
    expect(await infoOf(other)('memory', /^used_memory_peak:(\d+)/m)).toBeLessThan(160 * MIB)
    expect(other.complaints).toEqual([])
  })

  it('are no longer requested when the client has gone', async () => {
    const info = infoOf(other)
    const calls = (): Promise<number> => info('commandstats', /^cmdstat_get:calls=(\d+)/m)
    const before = (await calls()) || 0
    const sent = send('/pipeline', times('a'))
    const answer = await answerTo(sent)
    await once(answer, 'readable')
    sent.destroy()
    let seen = 0
    const hasStopped = async (): Promise<boolean> => {
      const past = seen
      for (let count = 0; count < 10; count++) await client.send('PING\r\n').expect('+PONG\r\n')
      seen = (await calls()) - before
      return seen > 0 && seen === past
    }
    await waitFor(hasStopped, { what: 'the engine to be asked for no more' })
    expect(seen).toBeLessThan(COMMANDS)
  })

  it('of a transaction that the engine gives up do not close the connection that others share', async () => {
    const { meter } = other.gateway.usageOf('db-one') ?? {}
    const before = meter?.month.requests ?? 0
    other.engine.signal('SIGSTOP')
    const answered = answerTo(send('/multi-exec', times('a')))
    await waitFor(() => (meter?.month.requests ?? 0) - before === COMMANDS, { what: 'the transaction to be sent' })
    await client.send('SELECT 0\r\n').expect('+OK\r\n')
    client.send('STRLEN a\r\n')
    await waitFor(() => (meter?.month.requests ?? 0) - before === COMMANDS + 1, { what: 'a command behind it' })
    other.engine.signal('SIGCONT')
    await client.expect(`:${2 * MIB}\r\n`)
    const answer = await answered
    expect(answer.statusCode).toBe(503)
    await textOf(answer)
  })
})

it('the gateway holds nothing for a client that has left before its replies arrive', async () => {
  const held = new Set<MemoryConsumer>()
  const memory = new ClientMemoryBudget()
  memory.grow = (consumer) => void held.add(consumer)
  memory.remove = (consumer) => void held.delete(consumer)
  const rig = await startRig({}, undefined, undefined, [], { memory })
  const init = { headers: { authorization: `Bearer ${CREDENTIALS.token}` } }
  for (let i = 0; i < 20; i++)
    await (await fetch(`${rig.restUrl}/rpush/list`, { ...init, method: 'POST', body: 'x'.repeat(100_000) })).text()
  rig.engine.signal('SIGSTOP')
  atCleanup(() => rig.engine.signal('SIGCONT'))
  const leaving = connect(Number(new URL(rig.restUrl).port), '127.0.0.1')
  leaving.write(
    `GET /lrange/list/0/-1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${init.headers.authorization}\r\n\r\n`,
  )
  const health = async (): Promise<string> => (await fetch(`${rig.restUrl}/health`)).text()
  await health()
  leaving.resetAndDestroy()
  await health()
  await health()
  rig.engine.signal('SIGCONT')
  await (await fetch(`${rig.restUrl}/ping`, init)).text()
  expect(held.size).toBe(0)
})

it.each([
  ['a command', '/', ['RPUSH', 'pushed', ...Array<string>(100_000).fill('x')], { result: 100_000 }],
  [
    'a transaction',
    '/multi-exec',
    [
      ['PING', 'x'.repeat(300_000)],
      ['INCR', 'n'],
    ],
    { 1: { result: 1 } },
  ],
])(
  'the gateway does not run %s whose client got an error while its body was read',
  async (_what, path, commands, answer) => {
    const body = JSON.stringify(commands)
    const memory = new ClientMemoryBudget()
    let evicted = 0
    memory.grow = (consumer) => {
      // The body has arrived. It is read in slices, in the next turns of the event loop.
      if (consumer.heldBytes === body.length && evicted++ === 0) setImmediate(() => consumer.evict())
    }
    const rig = await startRig({}, undefined, undefined, [], { memory })
    const init = { method: 'POST', headers: { authorization: `Bearer ${CREDENTIALS.token}` }, body }
    expect((await fetch(rig.restUrl + path, init)).status).toBe(503)
    // Reading this one takes as many turns, so it would run behind the first.
    expect(await (await fetch(rig.restUrl + path, init)).json()).toMatchObject(answer)
  },
)

it.each(['/', '/pipeline', '/multi-exec'])(
  'answers with every byte of long strings in an array, at %s',
  async (path) => {
    const rig = await startRig()
    const ask = async (command: readonly unknown[], headers: Record<string, string> = {}): Promise<unknown> => {
      const authorization = `Bearer ${CREDENTIALS.token}`
      const body = JSON.stringify(path === '/' ? command : [command])
      const answer = await fetch(rig.restUrl + path, { method: 'POST', headers: { authorization, ...headers }, body })
      const [one] = [(await answer.json()) as { result: unknown } | { result: unknown }[]].flat()
      return one?.result
    }
    // Characters of one to four bytes, and some that JSON escapes, at all places where a slice may end.
    const long = `${'é"\\\n€😀x'.repeat(70_000)}!`
    await ask(['MSET', 'long', long, 'short', 'é'])
    const nested = "return {{redis.call('GET', 'short'), {redis.call('GET', 'long')}}, 1, redis.status_reply('OK')}"
    expect(await ask(['MGET', 'long', 'none', 'short', 'long'])).toEqual([long, null, 'é', long])
    expect(await ask(['EVAL', nested, 0])).toEqual([['é', [long]], 1, 'OK'])
    const encoded = (text: string): string => Buffer.from(text).toString('base64')
    const base64 = { 'upstash-encoding': 'base64' }
    expect(await ask(['MGET', 'short', 'long'], base64)).toEqual([encoded('é'), encoded(long)])
    expect(await ask(['EVAL', nested, 0], base64)).toEqual([[encoded('é'), [encoded(long)]], 1, encoded('OK')])
  },
)
