import { errors, Redis, type RedisConfigNodejs } from '@upstash/redis'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

let rig: Rig
let redis: Redis

type Options = Partial<RedisConfigNodejs>

const clientWith = (options: Options, token: string = CREDENTIALS.token): Redis =>
  new Redis({ url: rig.restUrl, token, ...options })

beforeAll(async () => {
  rig = await startRig()
  redis = clientWith({ enableTelemetry: true })
})

beforeEach(async () => {
  await redis.flushall()
})

describe('@upstash/redis', () => {
  it('stores text, numbers, objects and binary-looking strings as they were', async () => {
    const values = ['text', 'ünïcödé ✓', 42, 1.5, true, { nested: [1, { deep: null }] }, ['a', 1]]
    await Promise.all(values.map((value, i) => redis.set(`k${i}`, value)))
    expect(await Promise.all(values.map((_, i) => redis.get(`k${i}`)))).toEqual(values)
    expect(await redis.get('missing')).toBeNull()
  })

  it('sends many calls of one tick as a pipeline', async () => {
    const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => redis.incrby('n', i)))
    expect(answers.at(-1)).toBe((499 * 500) / 2)
  })

  it('runs pipelines and transactions', async () => {
    expect(await redis.pipeline().set('a', 1).incr('a').get('a').exec()).toEqual(['OK', 2, 2])
    expect(await redis.multi().set('b', 'x').hset('h', { f: 1, g: 'two' }).hgetall('h').exec()).toEqual([
      'OK',
      2,
      { f: 1, g: 'two' },
    ])
    await expect(redis.multi().set('c', 1).lpush('c', 1).exec()).rejects.toThrow(/WRONGTYPE/)
    expect(await redis.get('c')).toBe(1)
  })

  it('understands the shapes of lists, hashes, sorted sets, scans and streams', async () => {
    await redis.rpush('l', 'a', 'b', 'c')
    expect(await redis.lrange('l', 0, -1)).toEqual(['a', 'b', 'c'])
    await redis.zadd('z', { score: 1, member: 'one' }, { score: 2.5, member: 'two' })
    expect(await redis.zrange('z', 0, -1, { withScores: true })).toEqual(['one', 1, 'two', 2.5])
    const [cursor, keys] = await redis.scan(0, { match: '*', count: 100 })
    expect([cursor, keys.sort()]).toEqual(['0', ['l', 'z']])
    const id = await redis.xadd('s', '*', { field: 'value' })
    expect(await redis.xrange('s', '-', '+')).toEqual({ [id]: { field: 'value' } })
  })

  it('runs scripts, and loads unknown ones', async () => {
    const script = redis.createScript<string[]>('return {KEYS[1], ARGV[1]}')
    expect(await script.exec(['key'], ['arg'])).toEqual(['key', 'arg'])
    expect(await redis.eval('return ARGV[1] + 1', [], [41])).toBe(42)
  })

  it('reports errors in its own words', async () => {
    await redis.set('text', 'abc')
    await expect(redis.incr('text')).rejects.toThrow(errors.UpstashError)
    await expect(redis.incr('text')).rejects.toThrow(/value is not an integer/)
    await expect(redis.exec(['SHUTDOWN'])).rejects.toThrow(/Command is not available: 'SHUTDOWN'/)
  })

  it('works without base64 and with a custom token', async () => {
    expect(await redis.ping()).toBe('PONG')
    redis.readYourWritesSyncToken = 'my-new-sync-token'
    expect(await redis.set('a', 'b')).toBe('OK')
    expect(redis.readYourWritesSyncToken).not.toBe('my-new-sync-token')
  })
})

describe('@upstash/redis with other options', () => {
  it.each<{ options: Options }>([
    { options: { responseEncoding: 'base64' } },
    { options: { responseEncoding: false } },
    { options: { enableAutoPipelining: false } },
    { options: { readYourWrites: false } },
    { options: { keepAlive: false } },
    { options: { enableTelemetry: false } },
    { options: { latencyLogging: true } },
    { options: { cache: 'no-store' } },
    { options: { retry: false } },
  ])('%j gets the same answers', async ({ options }) => {
    const other = clientWith(options)
    expect(await other.set('k', 'ünï OK')).toBe('OK')
    expect(await other.set('ok', 'OK')).toBe('OK')
    expect(await other.mget('k', 'ok', 'none')).toEqual(['ünï OK', 'OK', null])
    expect(await other.ping()).toBe('PONG')
    expect(await other.hset('h', { n: 1, f: 2.5, t: 'x', b: true, o: { z: [1] } })).toBe(5)
    expect(await other.hgetall('h')).toMatchObject({ n: 1, t: 'x', b: true, o: { z: [1] } })
  })
})

describe('@upstash/redis in detail', () => {
  it('fails only one of many calls of a tick', async () => {
    await redis.set('text', 'abc')
    const outcomes = await Promise.allSettled([redis.get('text'), redis.incr('text'), redis.type('text')])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(String(outcomes.map((outcome) => 'reason' in outcome && outcome.reason)[1])).toMatch(
      /value is not an integer/,
    )
  })

  it('sends more calls in a tick than fit in one pipeline', async () => {
    const answers = await Promise.all(Array.from({ length: 2_500 }, (_, i) => redis.set(`k${i}`, i)))
    expect(new Set(answers)).toEqual(new Set(['OK']))
    expect(await redis.dbsize()).toBe(2_500)
  })

  it('keeps the digits of large numbers that are sent as text', async () => {
    await redis.set('n', '9223372036854775806')
    expect(await redis.exec(['INCR', 'n'])).toBeDefined()
    expect(await redis.get('n')).toBe('9223372036854775807')
    await redis.set('tiny', 1e-7)
    expect(await redis.get('tiny')).toBe(1e-7)
  })

  it('runs scripts that only read, and functions', async () => {
    await redis.set('a', 'x')
    const script = redis.createScript<string, true>('return redis.call("GET", KEYS[1])', { readonly: true })
    expect(await script.exec(['a'], [])).toBe('x')
    const code = "#!lua name=mylib\nredis.register_function('f', function(keys, args) return args[1] end)"
    expect(await redis.functions.load({ code, replace: true })).toBe('mylib')
    expect(await redis.functions.call('f', [], ['q'])).toBe('q')
    expect(await redis.functions.stats()).toMatchObject({ engines: { LUA: { librariesCount: 1 } } })
  })

  it('reads streams with groups', async () => {
    const id = await redis.xadd('s', '*', { f: 'v' })
    await redis.xgroup('s', { type: 'CREATE', group: 'g', id: '0' })
    expect(await redis.xreadgroup('g', 'c', 's', '>')).toEqual([['s', [[id, ['f', 'v']]]]])
    expect(await redis.xpending('s', 'g', '-', '+', 10)).toEqual([[id, 'c', expect.any(Number), 1]])
    expect(await redis.xack('s', 'g', id)).toBe(1)
    await expect(redis.xread('s', '0', { blockMS: 10 })).rejects.toThrow(/is not allowed in REST/)
  })

  it('scans with types, trims exactly, and leaves no consumer after a read with NOACK', async () => {
    await redis.multi().set('string', 1).zadd('zset', { score: 1, member: 'm' }).exec()
    const found = await redis.scan(0, { withType: true, count: 1_000_000, match: '*' })
    expect(found[1].sort((a, b) => a.key.localeCompare(b.key))).toEqual([
      { key: 'string', type: 'string' },
      { key: 'zset', type: 'zset' },
    ])
    expect(await redis.exec(['SCAN', '0', 'TYPE', 'nosuch'])).toEqual([0, []])
    await Promise.all(Array.from({ length: 300 }, (_, i) => redis.xadd('s', '*', { i })))
    await redis.xtrim('s', { strategy: 'MAXLEN', threshold: 30, exactness: '~' })
    expect(await redis.xlen('s')).toBe(30)
    await redis.xgroup('s', { type: 'CREATE', group: 'g', id: '0' })
    const read = await redis.xreadgroup('g', 'c', 's', '>', { count: 2, NOACK: true })
    expect(read).toEqual([['s', [expect.any(Array), expect.any(Array)]]])
    expect(await redis.xinfo('s', { type: 'CONSUMERS', group: 'g' })).toEqual([])
    expect(await redis.xreadgroup('g', 'c', 's', '>', { count: 2 })).toHaveLength(1)
    await redis.xreadgroup('g', 'c', 's', '>', { NOACK: true })
    expect(await redis.xinfo('s', { type: 'CONSUMERS', group: 'g' })).toHaveLength(1)
    await expect(redis.xreadgroup('none', 'c', 's', '>', { NOACK: true })).rejects.toThrow(/NOGROUP No such key/)
  })

  it('refuses writes in read-only scripts with the text that its own test suite expects', async () => {
    await expect(redis.evalsha('0'.repeat(40), [], [])).rejects.toThrow(
      /NOSCRIPT No matching script\. Please use EVAL\./,
    )
    const code = "#!lua name=w\nredis.register_function('w', function(keys) return redis.call('SET', keys[1], 1) end)"
    await redis.functions.load({ code, replace: true })
    await expect(redis.functions.callRo('w', ['k'], [])).rejects.toThrow('commands are not allowed from read-only')
  })

  it('names the engines that have a command that this one lacks', async () => {
    const outcome = await redis.json.set('doc', '$', { a: 1 }).catch((error: unknown) => String(error))
    if (outcome !== 'OK') expect(outcome).toMatch(/Command is not available: 'JSON\.SET'.*Redis has it with the module/)
  })

  it('delivers messages by pattern, several patterns at once, until it unsubscribes', async () => {
    const messages: unknown[] = []
    const subscriber = redis.psubscribe<{ n: number }>(['a*', 'b*'])
    subscriber.on('pmessage', ({ pattern, channel, message }) => messages.push([pattern, channel, message]))
    const patterns = (count: number): Promise<unknown> =>
      waitFor(async () => (await redis.exec(['PUBSUB', 'NUMPAT'])) === count, {
        what: `${count} patterns`,
      })
    await patterns(2)
    await Promise.all([redis.publish('a1', { n: 1 }), redis.publish('b1', { n: 2 }), redis.publish('c1', { n: 3 })])
    await waitFor(() => messages.length === 2, { what: 'the messages' })
    expect(messages.sort()).toEqual([
      ['a*', 'a1', { n: 1 }],
      ['b*', 'b1', { n: 2 }],
    ])
    await subscriber.unsubscribe()
    await patterns(0)
  })

  it('reads with a reader token, and gets an error for anything else', async () => {
    await redis.set('a', 1)
    const reader = clientWith({}, CREDENTIALS.readerToken)
    expect(await reader.get('a')).toBe(1)
    expect(await reader.multi().get('a').exec()).toEqual([1])
    for (const refused of [
      () => reader.set('a', 2),
      () => reader.eval('return 1', [], []),
      () => reader.publish('c', 1),
    ]) {
      await expect(refused()).rejects.toThrow(/NOPERM (this user|User default_ro) has no permissions to run the/)
    }
    await expect(clientWith({}, 'nope').get('a')).rejects.toThrow(/WRONGPASS invalid or missing auth token/)
  })
})
