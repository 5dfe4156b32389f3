import { describe, expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Answer, frame, limited, login, newUsage, post, run } from '../testing/limited.js'
import { CREDENTIALS, RawClient, startRig } from '../testing/rig.js'

describe('the longest key', () => {
  const key = 'k'.repeat(32_769)
  const error = 'ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes'

  it('is 32 KB on TCP, at any position', async () => {
    const rig = await limited({})
    const client = await login(rig)
    client.send(frame('SET', key, 'x') + frame('MSET', 'a', 'b', key, 'x') + frame('EVAL', 'return 1', '1', key))
    await client.expect(`-${error}\r\n`.repeat(3))
    await client.send(frame('SET', key.slice(1), 'x') + frame('SET', 'a', key)).expect('+OK\r\n+OK\r\n')
  })

  it('is 32 KB on REST, and discards a transaction', async () => {
    const rig = await limited({})
    expect(await run(rig, 'SET', key, 'x')).toEqual({ status: 400, body: { error } })
    expect(
      (
        await post(rig, '/pipeline', [
          ['SET', key, 1],
          ['GET', 'a'],
        ])
      ).body,
    ).toEqual([{ error }, { result: null }])
    const discarded = await post(rig, '/multi-exec', [
      ['SET', 'a', 1],
      ['SET', key, 1],
    ])
    expect(discarded).toEqual({ status: 400, body: { error } })
    expect((await run(rig, 'GET', 'a')).body).toEqual({ result: null })
  })
})

describe('a command with hundreds of thousands of arguments', () => {
  const names = Array.from({ length: 200_000 }, (_, index) => `k${index}`)
  const framed = (command: readonly string[]): string =>
    `*${command.length}\r\n${command.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`

  it('is served on TCP and on REST like any other', async () => {
    const rig = await limited({ maxEntryBytes: 100_000_000 })
    const client = await login(rig)
    await client.send(framed(['EXISTS', ...names])).expect(':0\r\n')
    await client.send(framed(['SREM', 'set', ...names])).expect(':0\r\n')
    await client.send(framed(['BITFIELD', 'bits', ...names.slice(0, 60_000)])).expect('-ERR syntax error\r\n')
    expect(await post(rig, '/', ['EXISTS', ...names])).toEqual({ status: 200, body: { result: 0 } })
    expect(await post(rig, '/', ['SREM', 'set', ...names])).toEqual({ status: 200, body: { result: 0 } })
    expect((await post(rig, '/pipeline', [['DEL', ...names]])).body).toEqual([{ result: 0 }])
  })
})

describe('the longest reply', () => {
  const error = (actual: number): string =>
    `ERR max request size exceeded. Limit: 100000 bytes, Actual: ${actual} bytes`

  it('is that of a request: longer ones become errors, and the replies around them are intact', async () => {
    const rig = await limited({ maxRequestBytes: 100_000 })
    const client = await login(rig)
    const part = 'p'.repeat(60_000)
    await client
      .send(frame('SET', 'a', part) + frame('SET', 'b', part) + frame('APPEND', 'b', part))
      .expect('+OK\r\n+OK\r\n:120000\r\n')
    await client
      .send(frame('GET', 'a') + frame('MGET', 'a', 'a') + frame('GET', 'b') + frame('MGET', 'a', 'x') + frame('PING'))
      .expect(
        `$60000\r\n${part}\r\n-${error(120_024)}\r\n-${error(120_011)}\r\n*2\r\n$60000\r\n${part}\r\n$-1\r\n+PONG\r\n`,
      )
    expect(await run(rig, 'MGET', 'a', 'a')).toEqual({ status: 400, body: { error: error(120_024) } })
  })

  it('applies also to a reply that arrives in one piece', async () => {
    const rig = await startRig({ maxRequestBytes: 1_000 })
    const client = await login(rig)
    const part = 'p'.repeat(700)
    await client.send(frame('APPEND', 'a', part) + frame('APPEND', 'a', part)).expect(':700\r\n:1400\r\n')
    const error = 'ERR max request size exceeded. Limit: 1000 bytes, Actual: 1409 bytes'
    await client.send(frame('GET', 'a') + frame('PING')).expect(`-${error}\r\n+PONG\r\n`)
    expect(await run(rig, 'GET', 'a')).toEqual({ status: 400, body: { error } })
  })
})

describe('the largest entry', () => {
  const LIMIT = 1_000_000
  const piece = 'p'.repeat(50_000)

  it('refuses writes on TCP, can still be read, and accepts writes once it has shrunk', async () => {
    const rig = await limited({ maxEntryBytes: LIMIT })
    const client = await login(rig)
    const push = async (): Promise<boolean> => {
      const before = client.received
      client.send(frame('RPUSH', 'list', piece))
      await waitFor(() => client.received.length > before.length && client.received.endsWith('\r\n'), {
        what: 'a reply',
      })
      const reply = client.received
      client.received = ''
      if (reply.startsWith('-'))
        expect(reply).toMatch(
          /^-ERR max single record size exceeded\. Limit: 1000000 bytes, Actual: 10\d{5} bytes\r\n$/,
        )
      return reply.startsWith(':')
    }
    let pushed = 0
    while (await push()) expect(++pushed).toBeLessThan(20)
    expect(pushed).toBeGreaterThanOrEqual(17)
    await client.send(frame('LLEN', 'list')).expect(`:${pushed}\r\n`)
    await client.send(frame('LTRIM', 'list', '0', '4')).expect('+OK\r\n')
    expect(await push()).toBe(true)
  })

  it('refuses writes on REST', async () => {
    const rig = await limited({ maxEntryBytes: LIMIT })
    let answer = await run(rig, 'APPEND', 'text', piece)
    for (let i = 0; answer.status === 200 && i < 30; i++) answer = await run(rig, 'APPEND', 'text', piece)
    expect(answer.status).toBe(400)
    expect(answer.body).toEqual({
      error: expect.stringMatching(/^ERR max single record size exceeded\. Limit: 1000000 bytes/),
    })
    const { body } = await run(rig, 'STRLEN', 'text')
    expect((body as { result: number }).result).toBeLessThanOrEqual(LIMIT)
  })

  it('cannot be exceeded with an offset or a value', async () => {
    const rig = await limited({ maxEntryBytes: LIMIT })
    for (const command of [
      ['SETRANGE', 'a', 1_000_001, 'x'],
      ['SETBIT', 'a', 8_000_103, 1],
      ['BITFIELD', 'a', 'SET', 'u3', '8000103', 1],
      ['BITFIELD', 'a', 'SET', 'u8', '#1000001', 1],
    ]) {
      expect((await run(rig, ...command)).body).toEqual({
        error: expect.stringMatching(/^ERR max single record size exceeded\. Limit: \d+ bytes, Actual: \d+ bytes$/),
      })
    }
    expect((await run(rig, 'SET', 'a', 'x'.repeat(1_000_001))).status).toBe(400)
    expect((await run(rig, 'SETRANGE', 'a', 900_000, 'x')).body).toEqual({ result: 900_001 })
    expect((await run(rig, 'SET', 'a', 'x'.repeat(900_000))).body).toEqual({ result: 'OK' })
  })
})

describe('the largest data set', () => {
  it('refuses writes with limit and usage on TCP and REST, and accepts reads and deletes', async () => {
    const rig = await startRig({ maxDataBytes: 8_000_000 }, undefined, undefined, ['--maxmemory', '8000000'])
    let answer = await run(rig, 'SET', 'part-0', 'x'.repeat(1_000_000))
    for (let i = 1; answer.status === 200; i++) answer = await run(rig, 'SET', `part-${i}`, 'x'.repeat(1_000_000))
    const error = expect.stringMatching(
      /^ERR DB capacity quota exceeded\. Threshold: 8000000 bytes, Usage: [89]\d{6} bytes$/,
    )
    expect(answer).toEqual({ status: 400, body: { error } })
    const client = await login(rig)
    await client
      .send(frame('SET', 'more', 'z'.repeat(1_000_000)))
      .expect('-ERR DB capacity quota exceeded. Threshold: ')
    const script = "return redis.call('SET', KEYS[1], ARGV[1])"
    expect((await run(rig, 'EVAL', script, 1, 'more', 'z'.repeat(1_000_000))).body).toEqual({ error })
    expect((await run(rig, 'STRLEN', 'part-0')).body).toEqual({ result: 1_000_000 })
    expect((await run(rig, 'DEL', 'part-0', 'part-1', 'part-2')).body).toEqual({ result: 3 })
    expect((await run(rig, 'SET', 'more', 'x')).body).toEqual({ result: 'OK' })
  })
})

describe('the data set of a database that evicts', () => {
  it('stays within its size during writes, on both protocols', async () => {
    const settings = ['--maxmemory', '8000000', '--maxmemory-policy', 'allkeys-lru']
    const rig = await startRig({ maxDataBytes: 8_000_000 }, undefined, undefined, settings)
    const client = await login(rig)
    const part = 'x'.repeat(500_000)
    for (let i = 0; i < 20; i++) await client.send(frame('SET', `tcp-${i}`, part)).expect('+OK\r\n')
    for (let i = 0; i < 20; i++) expect((await run(rig, 'SET', `rest-${i}`, part)).status).toBe(200)
    const { body } = await run(rig, 'DBSIZE')
    expect((body as { result: number }).result).toBeLessThan(16)
    expect((await run(rig, 'STRLEN', 'rest-19')).body).toEqual({ result: 500_000 })
  })
})

describe('a database that is refused', () => {
  it('answers every command with the reason, keeps connections, and works once it is open again', async () => {
    const usage = newUsage()
    const rig = await limited({}, usage)
    const client = await login(rig)
    await client.send('MULTI\r\nSET a 1\r\n').expect('+OK\r\n+QUEUED\r\n')
    usage.admission = { kind: 'refused', error: new HomeportError('budget_exceeded', {}) }
    const error =
      'ERR This database has been suspended for exceeding the defined budget limit. Please increase budget or switch to a Fixed plan'
    await client.send('SET b 1\r\n').expect(`-${error}\r\n`)
    expect(await run(rig, 'GET', 'a')).toEqual({ status: 400, body: { error } })
    const events = await post(rig, '/subscribe/channel', [])
    expect(events).toEqual({ status: 400, body: { error } })
    usage.admission = { kind: 'open' }
    await client
      .send('EXEC\r\nGET a\r\n')
      .expect('-EXECABORT Transaction discarded because of previous errors.\r\n$-1\r\n')
  })
})

describe('client connections', () => {
  const error = 'ERR max concurrent connections exceeded'

  it('are refused above the limit on TCP, and so are event streams on REST, which count too', async () => {
    const usage = newUsage()
    const rig = await limited({ maxClients: 2 }, usage)
    await login(rig)
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
    const events = await fetch(`${rig.restUrl}/subscribe/news`, { headers, signal: abort.signal })
    expect([events.status, usage.meter.connections]).toEqual([200, 2])
    const late = new RawClient(rig.port)
    await late.expect(`-${error}\r\n`)
    await late.expectClosed()
    expect(await post(rig, '/subscribe/more', [])).toEqual({ status: 429, body: { error } })
    expect(usage.meter.refusedClients).toBe(2)
    expect((await run(rig, 'PING')).status).toBe(200)
    abort.abort()
    await waitFor(() => usage.meter.connections === 1, { what: 'the stream to be gone' })
    const stranger = new RawClient(rig.port)
    await waitFor(() => usage.meter.connections === 2, { what: 'a client that does not log in' })
    await login(rig)
    await stranger.expect(`-${error}\r\n`)
    await stranger.expectClosed()
    expect(usage.meter.connections).toBe(2)
  })
})

describe('an idle connection', () => {
  it('is closed after the timeout; a subscriber and a waiting client are not', async () => {
    const clock = new ManualClock(0)
    const rig = await startRig({ idleTimeoutMs: 200 }, undefined, undefined, [], { clock })
    const idle = await login(rig)
    const subscriber = await login(rig)
    const waiting = await login(rig)
    await subscriber.send('SUBSCRIBE news\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n')
    waiting.send('BLPOP list 0\r\n')
    await waitFor(() => rig.gateway.usageOf(rig.database.databaseId)?.meter.holds === 2, { what: 'both to wait' })
    clock.advance(400)
    await idle.expectClosed()
    expect((await run(rig, 'RPUSH', 'list', 'x')).body).toEqual({ result: 1 })
    await waiting.expect('*2\r\n$4\r\nlist\r\n$1\r\nx\r\n')
    expect((await run(rig, 'PUBLISH', 'news', 'x')).body).toEqual({ result: 1 })
    await subscriber.expect('*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n')
  })

  it('is closed after its client has read the last replies, however many sweeps that takes', async () => {
    const clock = new ManualClock(0)
    const rig = await startRig({ idleTimeoutMs: 200, maxRequestBytes: 40_000_000 }, undefined, undefined, [], { clock })
    const warnings: Error[] = []
    const warned = (warning: Error) => warnings.push(warning)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const slow = await login(rig)
    slow.socket.pause()
    slow.send('SETRANGE large 30000000 x\r\nGET large\r\n')
    const { meter } = rig.gateway.usageOf(rig.database.databaseId) ?? expect.fail()
    await waitFor(() => meter.bytesOut > 30_000_000, { what: 'the reply to be sent' })
    clock.advance(2_000)
    slow.socket.resume()
    await slow.expectClosed()
    expect(slow.received.length).toBeGreaterThan(30_000_000)
    expect(warnings).toEqual([])
  })

  it('is found by one timer, however often clients come and go and the database changes', async () => {
    const clock = new ManualClock(0)
    const rig = await startRig({ idleTimeoutMs: 8_000 }, undefined, undefined, [], { clock })
    const idle = await login(rig)
    const timers = clock.pendingTimers
    idle.socket.destroy()
    const { meter } = rig.gateway.usageOf(rig.database.databaseId) ?? newUsage()
    for (let round = 0; round < 5; round++) {
      await waitFor(() => meter.connections === 0, { what: 'no client to be left' })
      const client = await login(rig)
      expect(clock.pendingTimers).toBeLessThanOrEqual(timers)
      if (round < 4) client.socket.destroy()
      else {
        for (let change = 0; change < 20; change++) {
          clock.advance(900)
          rig.directory.put({ ...rig.database })
        }
        await client.expectClosed()
      }
    }
  })
})

describe('scripts', () => {
  const ENDLESS = 'while true do end'
  // It counts instead of reading TIME: newer engines stop the clock while a script runs.
  const SPIN = 'for i = 1, 3000000 do end return 1'
  const engine = ['--lua-time-limit', '100']

  it('are ended when they run too long on a connection that gets messages', async () => {
    const rig = await startRig({ scriptTimeoutMs: 100 }, undefined, undefined, engine)
    const client = await login(rig)
    const killed = async (): Promise<void> => {
      await waitFor(() => /-ERR .*killed by user.*\r\n/.test(client.received), { what: 'the end of the script' })
      client.received = ''
    }
    await client.send('CLIENT TRACKING ON\r\n').expect('+OK\r\n')
    client.send(frame('EVAL', ENDLESS, '0'))
    await killed()
    client.send(frame('MULTI') + frame('EVAL', ENDLESS, '0') + frame('EXEC'))
    await killed()
    client.send(frame('EVAL', ENDLESS, '0', 'x'.repeat(2 * 2 ** 20)))
    await killed()
    await client.send('ECHO x\r\n').expect('$1\r\nx\r\n')
  })

  it('are ended when they run too long, on both protocols and in transactions', async () => {
    const rig = await startRig({ scriptTimeoutMs: 100 }, undefined, undefined, engine)
    const client = await login(rig)
    const killed = (): Promise<unknown> =>
      waitFor(() => /-ERR .*killed by user.*\r\n/.test(client.received), { what: 'the end of the script' })
    client.send(frame('EVAL', ENDLESS, '0'))
    await killed()
    client.received = ''
    client.send(`MULTI\r\n${frame('EVAL', ENDLESS, '0')}EXEC\r\n`)
    await killed()
    expect((await run(rig, 'EVAL', ENDLESS, 0)).body).toEqual({ error: expect.stringContaining('killed by user') })
    expect((await run(rig, 'PING')).body).toEqual({ result: 'PONG' })
  })

  it('are refused once the script time of the minute is used up', async () => {
    const rig = await limited({ scriptMsPerMinute: 100 })
    const client = await login(rig)
    let refused: Answer | undefined
    await waitFor(
      async () => {
        const answer = await run(rig, 'EVAL', SPIN, 0)
        refused = answer.status === 200 ? undefined : answer
        return refused !== undefined
      },
      { what: 'the credits to be used up' },
    )
    expect(refused?.body).toEqual({
      error: expect.stringMatching(/^ERR max script time exceeded\. Limit: 100 ms per minute, Usage: \d{3,} ms/),
    })
    await client.send(frame('EVAL', 'return 1', '0')).expect('-ERR max script time exceeded. Limit: 100 ms per minute')
    expect((await run(rig, 'PING')).body).toEqual({ result: 'PONG' })
  })
})

describe('the allow list', () => {
  it('refuses other addresses on both protocols, and a change disconnects clients that are no longer allowed', async () => {
    const rig = await limited({ allowedIpRanges: ['127.0.0.0/8'] })
    const client = await login(rig)
    expect((await run(rig, 'PING')).status).toBe(200)
    const events = await fetch(`${rig.restUrl}/subscribe/news?_token=${CREDENTIALS.token}`)
    rig.directory.put({ ...rig.database, allowedIpRanges: ['203.0.113.0/24'] })
    await client.expectClosed()
    expect(await events.text()).toBe('data: subscribe,news,1\n\n')
    const outsider = new RawClient(rig.port)
    await outsider.expect('-ERR address 127.0.0.1 is not in the allow list')
    await outsider.expectClosed()
    expect(await run(rig, 'PING')).toMatchObject({ status: 403 })
  })
})

describe('a change of the database', () => {
  it('ends sessions at once when credentials change, and none when limits change', async () => {
    const rig = await limited({})
    const client = await login(rig)
    rig.directory.put({ ...rig.database, maxRequestBytes: 100 })
    await client.send(frame('SET', 'a', 'x'.repeat(100))).expect('-ERR max request size exceeded. Limit: 100 bytes')
    rig.directory.put({ ...rig.database, maxRequestBytes: 100, loginEpoch: 1 })
    await client.expectClosed()
    await login(rig)
    expect((await run(rig, 'PING')).status).toBe(200)
  })
})
