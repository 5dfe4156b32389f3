import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Redis } from 'iovalkey'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { engineTool } from '../testing/engine.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

const execute = promisify(execFile)
let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

function connect(options: { username?: string; password?: string } = {}): Redis {
  const redis = new Redis({ host: '127.0.0.1', port: rig.port, password: CREDENTIALS.password, ...options })
  redis.on('error', () => {})
  atCleanup(() => redis.disconnect())
  return redis
}

beforeEach(async () => {
  await connect().flushall()
})

async function redisCli(...args: string[]): Promise<string> {
  const { stdout } = await execute(engineTool('cli'), [
    '-p',
    String(rig.port),
    '-a',
    CREDENTIALS.password,
    '--no-auth-warning',
    ...args,
  ])
  return stdout
}

describe('redis-cli', () => {
  it('sets and gets', async () => {
    expect(await redisCli('set', 'greeting', 'hello world')).toBe('OK\n')
    expect(await redisCli('get', 'greeting')).toBe('hello world\n')
    expect(await redisCli('-3', 'hello', '3')).toContain('proto 3')
  })

  it('reads INFO without the paths and ports of the host', async () => {
    const info = await redisCli('info')
    expect(info).toContain('redis_version:')
    expect(info).toContain('connected_clients:')
    expect(info).not.toMatch(/executable|config_file|tcp_port|\.sock/)
  })

  it('runs a benchmark of pipelines over many connections', async () => {
    const args = [
      '-p',
      String(rig.port),
      '-a',
      CREDENTIALS.password,
      '-n',
      '5000',
      '-c',
      '20',
      '-P',
      '8',
      '-q',
      '-t',
      'set,get,lpush,mset',
    ]
    const { stdout } = await execute(engineTool('benchmark'), args)
    expect(stdout.match(/requests per second/g)).toHaveLength(4)
  })
})

describe('iovalkey', () => {
  it('keeps replies in order over many clients and pipelines', async () => {
    const clients = Array.from({ length: 8 }, () => connect())
    const lists = await Promise.all(
      clients.map((redis, i) =>
        Promise.all(
          Array.from({ length: 300 }, (_, j) =>
            redis.set(`k${i}:${j}`, `${i}-${j}`).then(() => redis.get(`k${i}:${j}`)),
          ),
        ),
      ),
    )
    expect(lists).toEqual(clients.map((_, i) => Array.from({ length: 300 }, (_, j) => `${i}-${j}`)))
  })

  it('keeps transactions of many clients separate', async () => {
    const clients = Array.from({ length: 6 }, () => connect())
    const results = await Promise.all(
      clients.map((redis, i) =>
        Promise.all(Array.from({ length: 20 }, () => redis.multi().incr(`n${i}`).incr('all').get(`n${i}`).exec())),
      ),
    )
    for (const list of results)
      expect(list.map((replies) => replies?.[2]?.[1])).toEqual([...list.keys()].map((n) => `${n + 1}`))
    expect(await connect().get('all')).toBe('120')
  })

  it('fails a transaction whose watched key another client changed', async () => {
    const [one, other] = [connect(), connect()]
    await one.watch('w')
    await other.set('w', 'changed')
    expect(await one.multi().set('w', 'mine').exec()).toBeNull()
    await one.watch('w')
    await one.unwatch()
    expect(await one.multi().set('w', 'mine').exec()).toEqual([[null, 'OK']])
  })

  it('waits in BLPOP without blocking other clients', async () => {
    const [waiting, other] = [connect(), connect()]
    const popped = waiting.blpop('jobs', 0)
    await waitFor(async () => /blocked_clients:1/.test(await other.info('clients')), {
      what: 'the client to be blocked',
    })
    await other.rpush('jobs', 'one')
    expect(await popped).toEqual(['jobs', 'one'])
    expect(await waiting.get('x')).toBeNull()
  })

  it('ends a timeout of BLPOP when it has passed, not only in the next round of an idle engine', async () => {
    const [waiting, other] = [connect(), connect()]
    const pings = async () => Number(/cmdstat_ping:calls=(\d+)/.exec(await other.info('commandstats'))?.[1] ?? 0)
    const before = await pings()
    for (let count = 0; count < 5; count++) expect(await waiting.blpop('nothing', 0.02)).toBeNull()
    expect(await pings()).toBeGreaterThan(before)
  })

  it('does not lose an element to a blocked client that has disconnected', async () => {
    const [gone, other] = [connect(), connect()]
    const popped = gone.blpop('jobs', 0)
    const settled = popped.catch(() => undefined)
    await waitFor(async () => /blocked_clients:1/.test(await other.info('clients')), {
      what: 'the client to be blocked',
    })
    gone.disconnect()
    await waitFor(async () => /blocked_clients:0/.test(await other.info('clients')), {
      what: 'the blocked client to disconnect',
    })
    await other.rpush('jobs', 'one')
    expect(await other.llen('jobs')).toBe(1)
    await settled
  })

  it('delivers published messages, also by pattern, and serves commands afterwards', async () => {
    const [subscriber, publisher] = [connect(), connect()]
    const messages: string[] = []
    subscriber.on('message', (channel, text) => messages.push(`${channel}=${text}`))
    subscriber.on('pmessage', (pattern, channel, text) => messages.push(`${pattern}>${channel}=${text}`))
    expect(await subscriber.subscribe('news', 'more')).toBe(2)
    expect(await subscriber.psubscribe('n*')).toBe(3)
    expect(await publisher.publish('news', 'x'.repeat(100_000))).toBe(2)
    await waitFor(() => messages.length === 2, { what: 'both messages' })
    expect(messages.map((text) => text.slice(0, 8))).toEqual(['news=xxx', 'n*>news='])
    await subscriber.unsubscribe('news', 'more')
    await subscriber.punsubscribe('n*')
    expect(await subscriber.get('x')).toBeNull()
  })

  it('shows commands to MONITOR without the socket of the engine', async () => {
    const monitor = await connect().monitor()
    atCleanup(() => monitor.disconnect())
    const seen: string[] = []
    monitor.on('monitor', (_time: string, args: string[], source: string) => seen.push(`${source} ${args.join(' ')}`))
    await connect().set('watched', 'yes')
    await waitFor(() => seen.some((line) => /set watched yes/i.test(line)), { what: 'the command in MONITOR' })
    expect(seen.join('\n')).not.toContain('unix:')
    monitor.disconnect()
  })

  it('carries values of megabytes in both directions', async () => {
    const value = Buffer.alloc(9 * 1024 * 1024, 'z')
    const redis = connect()
    await redis.set('big', value)
    const answers = await Promise.all([redis.getBuffer('big'), redis.get('none'), redis.getBuffer('big')])
    expect(answers.map((answer) => answer?.length ?? null)).toEqual([value.length, null, value.length])
  })

  it('lets default_ro only read', async () => {
    const reader = connect({ username: 'default_ro', password: CREDENTIALS.readerPassword })
    await connect().set('a', '1')
    expect(await reader.get('a')).toBe('1')
    await expect(reader.set('a', '2')).rejects.toThrow(/^NOPERM/)
    await expect(reader.eval('return 1', 0)).rejects.toThrow(/^NOPERM/)
  })

  it('WAIT counts the replicas of the engine', async () => {
    expect(await connect().wait(0, 0)).toBe(0)
  })

  it('reads streams with and without waiting', async () => {
    const [reader, writer] = [connect(), connect()]
    const waiting = reader.xread('BLOCK', 0, 'STREAMS', 's', '$')
    await waitFor(async () => /blocked_clients:1/.test(await writer.info('clients')), { what: 'the reader to wait' })
    await writer.xadd('s', '1-1', 'f', 'v')
    expect(await waiting).toEqual([['s', [['1-1', ['f', 'v']]]]])
    expect(await reader.xread('STREAMS', 's', '0')).toEqual([['s', [['1-1', ['f', 'v']]]]])
  })

  it('knows its name and lists the clients', async () => {
    const redis = connect()
    await redis.client('SETNAME', 'tester')
    expect(await redis.client('GETNAME')).toBe('tester')
    expect(await redis.client('LIST')).toMatch(/name=tester .*user=default/)
    expect(await redis.client('ID')).toBeGreaterThan(0)
  })
})
