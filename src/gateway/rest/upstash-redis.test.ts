import { errors, Redis } from '@upstash/redis'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CREDENTIALS, startRig } from '../testing/rig.js'

let redis: Redis

beforeAll(async () => {
  const rig = await startRig()
  redis = new Redis({ url: rig.restUrl, token: CREDENTIALS.token, enableTelemetry: true })
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

  it('runs scripts, loading them where they are not known', async () => {
    const script = redis.createScript<string[]>('return {KEYS[1], ARGV[1]}')
    expect(await script.exec(['key'], ['arg'])).toEqual(['key', 'arg'])
    expect(await redis.eval('return ARGV[1] + 1', [], [41])).toBe(42)
  })

  it('tells of errors in its own words', async () => {
    await redis.set('text', 'abc')
    await expect(redis.incr('text')).rejects.toThrow(errors.UpstashError)
    await expect(redis.incr('text')).rejects.toThrow(/value is not an integer/)
    await expect(redis.exec(['SHUTDOWN'])).rejects.toThrow(/Command is not available: 'SHUTDOWN'/)
  })

  it('works without base64 and with a token of its own choice', async () => {
    expect(await redis.ping()).toBe('PONG')
    redis.readYourWritesSyncToken = 'my-new-sync-token'
    expect(await redis.set('a', 'b')).toBe('OK')
    expect(redis.readYourWritesSyncToken).not.toBe('my-new-sync-token')
  })
})
