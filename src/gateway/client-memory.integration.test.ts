import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { ClientMemoryBudget } from '../base/index.js'
import { usedBytes } from '../base/testing/memory.js'
import type { Administration } from './deps.js'
import { frame, post, run } from './testing/limited.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from './testing/rig.js'

const MIB = 2 ** 20
const MEMORY_BYTES = 64 * MIB
const REQUEST_BYTES = MEMORY_BYTES / 4
/** Measured memory includes garbage of the runtime, and the memory of the test's clients in the same process. */
const SLACK_BYTES = 48 * MIB

let rig: Rig
let other: RawClient

beforeAll(async () => {
  const administration: Administration = {
    run: () => Promise.resolve({ kind: 'text', text: 'u'.repeat(MIB) }),
    refusalToAsk: () => undefined,
  }
  rig = await startRig({}, undefined, undefined, [], { memory: new ClientMemoryBudget(MEMORY_BYTES), administration })
  other = await new RawClient(rig.port).login()
  const value = 'v'.repeat(MIB / 2)
  for (const key of ['one', 'other']) await run(rig, 'RPUSH', 'list', value + key)
  await run(rig, 'SET', 'large', value.repeat(8))
})

const tooMuch = {
  status: 413,
  body: {
    error: expect.stringContaining(`ERR max request size exceeded. Limit: ${REQUEST_BYTES} bytes for all replies`),
  },
}

function begin(path: string, headers: Record<string, string> = {}): ClientRequest {
  const authorization = `Bearer ${CREDENTIALS.token}`
  return request(rig.restUrl + path, { method: 'POST', agent: false, headers: { authorization, ...headers } }).on(
    'error',
    () => {},
  )
}

const times = (count: number, ...command: string[]): readonly string[][] => Array.from({ length: count }, () => command)

describe('replies of one request', () => {
  it('become an error when they are too long together', async () => {
    const commands = [['SET', 'first', 1], ...times(20, 'LRANGE', 'list', '0', '-1'), ['SET', 'last', 1]]
    expect(await post(rig, '/pipeline', commands)).toEqual(tooMuch)
    // The engine is not asked for replies that nobody can get.
    expect(await run(rig, 'EXISTS', 'first', 'last')).toEqual({ status: 200, body: { result: 1 } })
    const less = await post(rig, '/pipeline', times(10, 'LRANGE', 'list', '0', '-1'))
    expect(less).toMatchObject({ status: 200, body: { length: 10 } })
    expect(await post(rig, '/pipeline', times(20, 'ACL', 'LIST'))).toEqual(tooMuch)
  })

  it('that are streamed close the connection of a client that does not read them', async () => {
    const before = usedBytes()
    // Each of its bytes takes six in JSON.
    await run(rig, 'SETRANGE', 'zeros', 4 * MIB - 1, 'x')
    const sent = begin('/pipeline')
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    sent.end(JSON.stringify(times(50, 'GET', 'zeros')))
    const [answer] = await answered
    const message = 'a REST client that does not read its response was disconnected'
    await waitFor(() => rig.complaints.includes(message), { what: 'the client to be disconnected' })
    expect(usedBytes() - before).toBeLessThan(REQUEST_BYTES + SLACK_BYTES)
    await other.send('PING\r\n').expect('+PONG\r\n')
    answer.destroy()
  })

  it('that are streamed wait for a client that reads slowly', async () => {
    const before = usedBytes()
    const sent = begin('/pipeline')
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    sent.end(JSON.stringify(times(20, 'GET', 'large')))
    const [answer] = await answered
    let bytes = 0
    let most = 0
    for await (const piece of answer) {
      const [past, length] = [bytes, (piece as Buffer).length]
      bytes += length
      const isNext = Math.floor(bytes / (16 * MIB)) > Math.floor(past / (16 * MIB))
      if (isNext) await other.send('PING\r\n').expect('+PONG\r\n')
      if (isNext) most = Math.max(most, usedBytes())
    }
    expect(bytes).toBeGreaterThan(80 * MIB)
    expect(most - before).toBeLessThan(REQUEST_BYTES + SLACK_BYTES)
  })
})

describe('a transaction whose replies are too long', () => {
  it('is not reported as discarded, because it has run', async () => {
    const answer = await post(rig, '/multi-exec', [['INCR', 'count'], ...times(20, 'LRANGE', 'list', '0', '-1')])
    expect(answer).toEqual({
      status: 400,
      body: { error: expect.stringMatching(/^ERR max request size exceeded\. Limit: \d+ bytes, Actual: \d+ bytes$/) },
    })
    expect(await run(rig, 'GET', 'count')).toEqual({ status: 200, body: { result: '1' } })
  })

  it('gets an error for answers of the gateway, too', async () => {
    const list = 'MULTI\r\nINCR n\r\nACL LIST\r\n'
    const few = await new RawClient(rig.port).login()
    await few.send(`${list}EXEC\r\n`).expect('+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n$1048576\r\n')
    const many = await new RawClient(rig.port).login()
    await many.send(`${list}${'ACL LIST\r\n'.repeat(11)}EXEC\r\n`).expect(`+OK\r\n${'+QUEUED\r\n'.repeat(13)}`)
    await many.expect('-ERR max request size exceeded. Limit: 10485760 bytes, Actual: 12583060 bytes\r\n')
    expect(await run(rig, 'GET', 'n')).toEqual({ status: 200, body: { result: '2' } })
  })
})

describe('many clients that make the server hold memory', () => {
  it('over TCP are disconnected, those with the most memory first, before it is too much', async () => {
    const before = usedBytes()
    const length = MIB - 1_000
    const half = Buffer.from(`*3\r\n$3\r\nSET\r\n$1\r\na\r\n$${length}\r\n${'x'.repeat(length - 10)}`)
    const crowd = await Promise.all(Array.from({ length: 100 }, () => new RawClient(rig.port).login()))
    for (const client of crowd) client.send(half)
    const closed = (): number => crowd.filter(({ socket }) => socket.closed).length
    await waitFor(() => closed() > 30, { what: 'enough of them to be disconnected' })
    expect(usedBytes() - before).toBeLessThan(MEMORY_BYTES + SLACK_BYTES)
    await other.send('PING\r\n').expect('+PONG\r\n')
    // Until the bytes of all of them have arrived, more may be disconnected.
    for (const client of crowd) client.send(`${'y'.repeat(10)}\r\n`)
    const served = (): number => crowd.filter(({ received }) => received === '+OK\r\n').length
    await waitFor(() => closed() + served() === crowd.length, { what: 'the others to be served' })
    expect(served()).toBeGreaterThan(0)
    for (const { socket } of crowd) socket.destroy()
  })

  it('for replies that are not whole get an error, and are served later', async () => {
    const crowd = await Promise.all(Array.from({ length: 200 }, () => new RawClient(rig.port).login()))
    for (const client of crowd) client.send('MULTI\r\nLRANGE list 0 -1\r\n')
    await Promise.all(crowd.map((client) => client.expect('+OK\r\n+QUEUED\r\n')))
    rig.engine.signal('SIGSTOP')
    for (const client of crowd) client.send('EXEC\r\n')
    await other.send('SELECT 0\r\n').expect('+OK\r\n')
    rig.engine.signal('SIGCONT')
    const refused = (): RawClient | undefined =>
      crowd.find(({ received }) => received.startsWith('-ERR The buffers of the server'))
    await waitFor(() => refused() !== undefined, { what: 'an error' })
    const client = refused()
    await waitFor(() => client?.received.endsWith('\r\n') === true, { what: 'the end of the error' })
    if (client) client.received = ''
    await client?.send('PING\r\n').expect('+PONG\r\n')
    for (const { socket } of crowd) socket.destroy()
  })

  it('for commands that wait for EXEC are disconnected, too', async () => {
    const client = await new RawClient(rig.port).login()
    client.send(`MULTI\r\n${frame('CLIENT', 'SETNAME', 'n'.repeat(200_000)).repeat(350)}`)
    await client.expectClosed()
  })

  it('over REST get an error to retry later', async () => {
    const length = 8 * MIB
    const body = JSON.stringify(['SET', 'a', 'x'.repeat(length)])
    const crowd = Array.from({ length: 20 }, () => {
      const sent = begin('/', { 'content-length': String(body.length) })
      const answered = new Promise<number | undefined>((resolve) =>
        sent.on('response', (answer) => {
          resolve(answer.statusCode)
          answer.resume()
        }),
      )
      sent.write(body.slice(0, -10))
      return { sent, answered }
    })
    const first = await Promise.race(crowd.map(({ answered }) => answered))
    expect(first).toBe(503)
    expect(await run(rig, 'PING')).toEqual({ status: 200, body: { result: 'PONG' } })
    for (const { sent } of crowd) sent.destroy()
  })
})
