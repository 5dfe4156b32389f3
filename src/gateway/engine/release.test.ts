import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { duplexPair } from 'node:stream'
import { json } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ConnectionLimiter } from '../../base/index.js'
import type { RemoteNode } from '../../http/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeEach(async () => {
  rig = await startRig()
})

const release = (): boolean => rig.gateway.releaseEngines('db-one', 'when-unused')
const client = (): Promise<RawClient> => new RawClient(rig.port).login()
const released = () => waitFor(release, { what: 'the connections to be released' })

/** A gateway whose database moves to another one with `move`. */
async function startHomes() {
  const next = await startRig()
  let home: RemoteNode | undefined
  const otherNodes = {
    byToken: async () => home,
    movedTo: () => home,
    whileMoving: () => undefined,
    byServerName: async () => undefined,
  }
  const old = await startRig({}, undefined, undefined, [], { otherNodes })
  const hold = () => waitFor(() => old.gateway.holdEngines('db-one'), { what: 'the engine to have answered' })
  const move = (): void => {
    home = {
      node: 'next',
      connect: async (ip) => {
        const [near, far] = duplexPair()
        next.gateway.accept('rest', far, ip, '')
        return near
      },
    }
    old.gateway.disconnectClients('db-one')
    old.directory.remove('db-one')
  }
  return { old, next, hold, move }
}

/** A request that the gateway has accepted, and whose body is still to be sent. */
async function acceptedRequest(url: string, bodyBytes: number): Promise<ClientRequest> {
  const headers = { authorization: `Bearer ${CREDENTIALS.token}`, 'content-length': bodyBytes }
  const sent = request(url, { method: 'POST', headers: { ...headers, expect: '100-continue' }, agent: false })
  sent.flushHeaders()
  await once(sent, 'continue')
  return sent
}

async function answerTo(sent: ClientRequest, body: string | Buffer): Promise<unknown> {
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return json(answer)
}

describe('releasing the connections to an engine', () => {
  it('closes them while clients stay, and the next command of each connects again', async () => {
    const shared = await client()
    const own = await client()
    await shared.send('SET a 1\r\n').expect('+OK\r\n')
    await own.send('MULTI\r\nINCR a\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n*1\r\n:2\r\n')
    await released()
    await rig.engine.kill()
    const answer = shared.send('GET a\r\n')
    await rig.engine.start()
    await answer.expect('$-1\r\n')
    await own.send('INCR a\r\n').expect(':1\r\n')
    expect(rig.complaints).toEqual([])
  })

  it('is refused while a client has state on one or waits for a reply', async () => {
    const raw = await client()
    await raw.send('MULTI\r\n').expect('+OK\r\n')
    expect(release()).toBe(false)
    await raw.send('DISCARD\r\nWATCH k\r\n').expect('+OK\r\n+OK\r\n')
    expect(release()).toBe(false)
    await raw.send('UNWATCH\r\n').expect('+OK\r\n')
    await released()
    raw.send('BLPOP q 0\r\n')
    await waitFor(() => !release(), { what: 'the command to wait' })
    await (await client()).send('RPUSH q x\r\n').expect(':1\r\n')
    await raw.expect('*2\r\n$1\r\nq\r\n$1\r\nx\r\n')
    await released()
    await raw.send('SUBSCRIBE news\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n')
    expect(release()).toBe(false)
  })

  it('disconnects such clients on request, and keeps the others', async () => {
    const shared = await client()
    const [subscriber, transacting] = [await client(), await client()]
    await shared.send('PING\r\n').expect('+PONG\r\n')
    await subscriber.send('SUBSCRIBE news\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n')
    await transacting.send('MULTI\r\n').expect('+OK\r\n')
    expect(rig.gateway.releaseEngines('db-one', 'and-send-away')).toBe(true)
    await subscriber.expectClosed()
    await transacting.expectClosed()
    await shared.send('PING\r\n').expect('+PONG\r\n')
  })

  it('is prepared by holding commands, while blocked and incomplete commands keep their connection', async () => {
    const [transacting, blocked, uploader] = [await client(), await client(), await client()]
    await transacting.send('MULTI\r\nINCR a\r\n').expect('+OK\r\n+QUEUED\r\n')
    blocked.send('BLPOP q 0\r\n')
    uploader.send(`*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$2000000\r\n${'x'.repeat(500_000)}`)
    await waitFor(() => rig.gateway.isReceiving('db-one'), { what: 'the large command' })
    expect(rig.gateway.holdEngines('db-one')).toBe(false)
    await waitFor(() => rig.gateway.holdEngines('db-one'), { what: 'nothing more to come of it' })
    transacting.send('EXEC\r\n')
    await (await client()).send('INCR a\r\n').expect(':1\r\n')
    rig.gateway.abortIncomplete('db-one')
    await uploader.expectClosed()
    expect(uploader.received).toBe('')
    rig.gateway.proceed('db-one')
    await transacting.expect('*1\r\n:2\r\n')
    await (await client()).send('RPUSH q x\r\n').expect(':1\r\n')
    await blocked.expect('*2\r\n$1\r\nq\r\n$1\r\nx\r\n')
  })

  it('lets the next home answer the REST requests that wait, each once', async () => {
    const { old, hold, move } = await startHomes()
    const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
    const answerOf = async (path: string, body?: unknown): Promise<unknown> => {
      const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      return (await fetch(`${old.restUrl}${path}`, { headers, ...sent })).json()
    }
    expect(await answerOf('/incr/n')).toEqual({ result: 1 })
    await hold()
    old.fleet.located = new Promise(() => undefined)
    const { meter } = old.gateway.usageOf('db-one') ?? expect.fail()
    const before = meter.bytesIn
    const bodies = [
      ['INCR', 'n'],
      [
        ['INCR', 'n'],
        ['INCR', 'n'],
      ],
      [['INCR', 'n']],
    ]
    const paths = ['/', '/pipeline', '/multi-exec']
    const waiting = paths.map((path, index) => answerOf(path, bodies[index]))
    const bytes = paths.join('').length + bodies.reduce((sum, body) => sum + JSON.stringify(body).length, 0)
    await waitFor(() => meter.bytesIn === before + bytes, { what: 'the requests' })

    move()
    const answers = (await Promise.all(waiting)).flat() as { result: number }[]
    expect(answers).toEqual(Array(4).fill({ result: expect.any(Number) }))
    const [least = 0, ...others] = answers.map(({ result }) => result).sort()
    expect(others.map((result) => result - least)).toEqual([1, 2, 3])
  })

  it('lets the next home answer the REST requests whose body arrives after the move', async () => {
    const { old, next, hold, move } = await startHomes()
    const bodies = [
      ['/', ['INCR', 'n']],
      ['/pipeline', [['INCR', 'n']]],
      ['/multi-exec', [['INCR', 'n']]],
    ] as const
    const slow = await Promise.all(
      bodies.map(async ([path, body]) => {
        const text = JSON.stringify(body)
        return { text, sent: await acceptedRequest(old.restUrl + path, text.length) }
      }),
    )
    await hold()
    move()
    const answers = await Promise.all(slow.map(({ sent, text }) => answerTo(sent, text)))
    expect((answers.flat() as { result: number }[]).map(({ result }) => result).sort()).toEqual([1, 2, 3])
    expect(old.complaints.concat(next.complaints)).toEqual([])
  })

  it('tells a client whose database was deleted before the body arrived that nothing was done', async () => {
    const sent = await acceptedRequest(rig.restUrl, 12)
    rig.directory.remove('db-one')
    expect(await answerTo(sent, '["INCR","n"]')).toMatchObject({ error: expect.stringContaining('Nothing was done.') })
  })

  it('lets the next home answer a large REST request of which nothing was read', async () => {
    const { old, hold, move } = await startHomes()
    await hold()
    old.fleet.located = new Promise(() => undefined)
    const { meter } = old.gateway.usageOf('db-one') ?? expect.fail()
    const value = 'x'.repeat(3_000_000)
    const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
    const answer = fetch(`${old.restUrl}/set/large`, { method: 'POST', headers, body: value })
    await waitFor(() => meter.bytesIn >= value.length, { what: 'the request to wait' })
    move()
    expect(await (await answer).json()).toEqual({ result: 'OK' })
    expect(await (await fetch(`${old.restUrl}/strlen/large`, { headers })).json()).toEqual({ result: value.length })
  })

  it('opens no event stream for a client that left while the database was between two homes', async () => {
    let arrive = (): void => {}
    const moving = new Promise<void>((resolve) => (arrive = resolve))
    let asked = 0
    const connectionLimiter = new ConnectionLimiter()
    const otherNodes = {
      byToken: async () => undefined,
      movedTo: () => undefined,
      whileMoving: () => {
        asked++
        return moving
      },
      byServerName: async () => undefined,
    }
    const here = await startRig({}, undefined, undefined, [], { otherNodes, connectionLimiter })
    const served = here.directory.find('db-one') ?? expect.fail()
    here.directory.remove('db-one')
    const gone = new AbortController()
    const request = { headers: { authorization: `Bearer ${CREDENTIALS.token}` }, signal: gone.signal }
    fetch(`${here.restUrl}/subscribe/news`, request).catch(() => undefined)
    await waitFor(() => asked === 1, { what: 'the request' })
    gone.abort()
    await waitFor(() => connectionLimiter.size === 0, { what: 'the gateway to see that the client has gone' })
    here.directory.put(served)
    arrive()
    await new Promise(setImmediate)
    expect(here.gateway.usageOf('db-one')?.meter).toMatchObject({ holds: 0, connections: 0 })
  })

  it('waits for requests of other nodes before it stops', async () => {
    await waitFor(() => rig.gateway.holdEngines('db-one'), { what: 'the engine to have answered' })
    const { meter } = rig.gateway.usageOf('db-one') ?? expect.fail()
    const before = meter.bytesIn
    const [near, far] = duplexPair()
    rig.gateway.accept('rest', far, '192.0.2.1', '')
    near.write(`GET /ping HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${CREDENTIALS.token}\r\n\r\n`)
    let text = ''
    near.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    await waitFor(() => meter.bytesIn > before, { what: 'the request' })
    const stopped = rig.gateway.stop(10_000).then(() => (text += ' stopped'))
    rig.gateway.proceed('db-one')
    await waitFor(() => text.includes('PONG'), { what: 'the answer' })
    near.end()
    await stopped
    expect(text).toMatch(/^HTTP\/1.1 200 .*PONG.* stopped$/s)
  })

  it('does not disturb REST', async () => {
    const ping = async (): Promise<unknown> =>
      (await fetch(`${rig.restUrl}/ping`, { headers: { authorization: `Bearer ${CREDENTIALS.token}` } })).json()
    expect(await ping()).toEqual({ result: 'PONG' })
    await released()
    expect(await ping()).toEqual({ result: 'PONG' })
  })
})
