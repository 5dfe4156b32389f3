import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seeded } from '../../src/base/testing/random.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseMove } from '../../src/contract/server/moves.js'
import { atCleanup, call, freePort, newPlace, type Place, tempDir, waitFor } from '../support/index.js'
import { type SlowWire, startSlowWire } from '../support/slow-wire.js'
import { engineCalls } from './engine-calls.js'
import { makeNodeStore, startNode, type TestNode } from './test-node.js'

/**
 * Replicas of read regions at nodes of those regions: `a` is the home, `b` a node of the read region, the link may be slow.
 */

type Made = DatabaseRecord & Record<'rest_token' | 'read_only_rest_token' | 'password', string>

const HOSTS = { a: '127.0.0.2', b: '127.0.0.3', d: '127.0.0.5' } as const
/** Rounds of the checker of stale reads; `npm run crash -- --only read-regions` plays more. */
const ROUNDS = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 2)
/** Writes of a round, each of which is read three times. */
const PAIRS = process.env.HOMEPORT_CRASH_CYCLES === undefined ? 12 : 25
const LARGE = 'x'.repeat(3_000_000)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))

let a: TestNode
let b: TestNode
/** Another node of the region of `b`, in one test. */
let nodeD: TestNode | undefined
let wire: SlowWire
let placeOfB: Place

const place = () => newPlace({ dataDir: tempDir() })
const startB = () => startNode('b', placeOfB, { host: HOSTS.b, region: 'eu-west-1' })
const HOST_OF_C = '127.0.0.4'

beforeAll(async () => {
  await makeNodeStore()
  const peerPort = await freePort()
  wire = await startSlowWire(peerPort)
  placeOfB = await place()
  const advertise = `127.0.0.1:${wire.port}`
  a = await startNode('a', await place(), { host: HOSTS.a, region: 'us-east-1', peerPort, advertise })
  b = await startB()
  await knowEachOther()
})

const knowEachOther = () =>
  waitFor(
    async () =>
      ((await a.api('GET', '/v2/nodes')).body as { name: string }[]).some(
        (one) => one.name === 'b' && 'engine_memory' in one,
      ),
    { what: 'the nodes to know each other' },
  )

async function create(name: string, options: { tls?: boolean } = {}): Promise<Made> {
  const body = {
    database_name: name,
    platform: 'aws',
    primary_region: 'us-east-1',
    plan: 'payg',
    read_regions: ['eu-west-1'],
    ...options,
  }
  const made = await a.api('POST', '/v2/redis/database', body)
  expect(made).toMatchObject({ status: 200 })
  return made.body as Made
}

type Name = keyof typeof HOSTS

const nodeOf = (name: Name): TestNode => (name === 'a' ? a : name === 'd' && nodeD ? nodeD : b)

async function rest(at: Name, { rest_token }: Made, command: readonly unknown[], syncToken?: string) {
  const { headers, body, status } = await call(`http://${HOSTS[at]}:${nodeOf(at).place.restPort}/`, {
    method: 'POST',
    json: command,
    headers: {
      authorization: `Bearer ${rest_token}`,
      ...(syncToken !== undefined && { 'upstash-sync-token': syncToken }),
    },
  })
  return { status, body, result: (body as { result?: unknown }).result, token: headers.get('upstash-sync-token') ?? '' }
}

function client(at: Name, { port, password, tls }: Made): Redis {
  const encrypted = tls ? { tls: { rejectUnauthorized: false } } : {}
  const redis = new Redis({ host: HOSTS[at], port, password, retryStrategy: () => null, ...encrypted })
  redis.on('error', () => undefined)
  atCleanup(() => redis.disconnect())
  return redis
}

const callsAt = (at: Name, made: Made) =>
  engineCalls(nodeOf(at).place.dataDir, at === 'a' ? 'us-east-1' : 'eu-west-1', made)

/** Resolves when the replica of a node, `b`, has answered a read that was sent there. */
async function untilReplicaAnswers(
  made: Made,
  read = (): Promise<unknown> => rest('b', made, ['GET', 'k']),
  at: Name = 'b',
) {
  const calls = () => callsAt(at, made).catch(() => Number.POSITIVE_INFINITY)
  const answers = async () => {
    const before = await calls()
    await read()
    return (await calls()) > before
  }
  await waitFor(answers, { what: 'the replica to answer a read' })
}

const filesAtB = () => readdirSync(join(placeOfB.dataDir, 'databases'))

describe('a database with a read region at another node', () => {
  it('is read there, over REST and the Redis protocol, and shows what was written', async () => {
    const made = await create('near')
    expect((await rest('b', made, ['SET', 'k', '0'])).result).toBe('OK')
    await untilReplicaAnswers(made)
    const redis = client('b', made)
    await untilReplicaAnswers(made, () => redis.get('k'))

    // On a busy machine the replica cannot always prove in time that it has everything; then the home answers.
    const answers: unknown[] = []
    const isReadThere = async () => {
      const [home, replica] = [await callsAt('a', made), await callsAt('b', made)]
      answers.push(...(await Promise.all(Array.from({ length: 200 }, () => redis.get('k')))))
      for (let count = 0; count < 20; count++) answers.push((await rest('b', made, ['GET', 'k'])).result)
      return (await callsAt('b', made)) - replica > 150 && (await callsAt('a', made)) - home < 70
    }
    await waitFor(isReadThere, { what: 'the replica to answer most reads' })
    expect(new Set(answers)).toEqual(new Set(['0']))

    // Everything else goes to the home, in the order of the client.
    const pipeline = redis.pipeline().set('p', 1).get('p').incr('p').get('p').get('k').strlen('k')
    expect(await pipeline.exec()).toEqual(['OK', '1', 2, '2', '0', 1].map((value) => [null, value]))
    expect(await redis.multi().incr('n').get('n').exec()).toEqual([
      [null, 1],
      [null, '1'],
    ])
    expect(await redis.set('large', LARGE)).toBe('OK')
    expect(await redis.get('large')).toBe(LARGE)
    expect((await rest('b', made, ['GET', 'large'])).result).toBe(LARGE)
    expect(await rest('b', made, ['LLEN', 'k'])).toMatchObject({ status: 400, body: { error: /^WRONGTYPE/ } })
    expect(await redis.client('LIST')).toContain(`laddr=${HOSTS.a}:`)
    const subscriber = client('b', made)
    await subscriber.subscribe('news')
    await redis.publish('news', 'hello')
    await expect(subscriber.get('k')).rejects.toThrow()

    // The home counts the reads at the replica.
    const counted = await waitFor(
      async () => {
        const stats = (await a.api('GET', `/v2/redis/stats/${made.database_id}`)).body as Record<string, number>
        return (stats.total_monthly_read_requests ?? 0) > 220 && stats
      },
      { what: 'the reads to be counted' },
    )
    expect(counted.total_monthly_read_requests).toBeLessThan(400)
  })

  it('refuses clients that have lost their access', async () => {
    const made = await create('guarded')
    const { database_id: id } = made
    await rest('b', made, ['SET', 'k', 'v'])
    await untilReplicaAnswers(made)
    const redis = client('b', made)
    expect(await redis.get('k')).toBe('v')

    const allow = (ips: readonly string[]) => b.api('POST', `/v2/redis/update-allowlist/${id}`, { allowed_ips: ips })
    expect(await allow(['10.9.8.7'])).toMatchObject({ status: 200 })
    expect((await rest('b', made, ['GET', 'k'])).status).toBe(403)
    await waitFor(() => redis.status === 'end', { what: 'the client to be disconnected' })
    await allow([])
    await untilReplicaAnswers(made)
    const reset = (await a.api('POST', `/v2/redis/reset-password/${id}`)).body as Made
    expect((await rest('b', made, ['GET', 'k'])).status).toBe(401)
    const renewed = { ...made, ...reset }
    expect((await rest('b', renewed, ['GET', 'k'])).result).toBe('v')
    await untilReplicaAnswers(renewed)

    // A read region that is removed and added again; a database that is deleted.
    const regions = (names: readonly string[]) =>
      a.api('POST', `/v2/redis/update-regions/${id}`, { read_regions: names })
    expect(await regions([])).toMatchObject({ status: 200 })
    await waitFor(() => !filesAtB().includes(id), { what: 'the replica to be deleted' })
    expect((await rest('b', renewed, ['GET', 'k'])).result).toBe('v')
    const early = client('b', renewed)
    await early.get('k')
    expect(await regions(['eu-west-1'])).toMatchObject({ status: 200 })
    expect(filesAtB()).toContain(id)
    const late = client('b', renewed)
    await untilReplicaAnswers(renewed, () => late.get('k'))
    // Reads also show the writes of a client that connected before the replica existed.
    for (let value = 1; value <= 30; value++) {
      await early.set('k', value)
      expect(await late.get('k')).toBe(`${value}`)
    }
    expect((await a.api('DELETE', `/v2/redis/database/${id}`)).body).toBe('OK')
    expect(filesAtB()).not.toContain(id)
  })

  // The node of the region cannot read what encrypted connections carry.
  it.each([false, true])(
    'never shows an old state, whatever the lag, the protocol and the node (TLS: %s)',
    async (tls) => {
      const made = await create(`register-${tls}`, { tls })
      await untilReplicaAnswers(made)
      const clients = [client('b', made), client('b', made)] as const
      const home = client('a', made)
      const random = seeded(SEED)
      const pick = <Item>(items: readonly Item[]): Item => items[random.below(items.length)] as Item
      let token = ''
      // A write in the region is seen in the region. One at the home is seen with the token of its answer.
      const near: ((value: number) => Promise<unknown>)[] = [
        (value) => clients[0].set('k', value),
        (value) => clients[1].multi().set('k', value).exec(),
        async (value) => (token = (await rest('b', made, ['SET', 'k', value])).token),
      ]
      const far = async (value: number) => (token = (await rest('a', made, ['SET', 'k', value], '')).token)
      const withToken = async () => {
        const read = await rest('b', made, ['GET', 'k'], token)
        token = read.token
        return read.result
      }
      const reads = [
        () => clients[0].get('k'),
        () => clients[1].get('k'),
        () => rest('b', made, ['GET', 'k']).then((one) => one.result),
      ]
      const at = { b: await callsAt('b', made), pairs: 0 }
      for (let value = 1, round = 0; round < ROUNDS; round++) {
        // Without a lag the replica answers some reads for sure; with one it is behind for sure.
        wire.setLag(round % 4 === 0 ? 0 : pick([1, 5, 20]))
        for (let pair = 0; pair < PAIRS; pair++, value++) {
          // A large value delays the replication of the next write, but not its answer.
          const large = random.chance(0.1) ? home.set('large', LARGE) : undefined
          const isFar = random.chance(0.2)
          await (isFar ? far(value) : pick(near)(value))
          // A client of the home is not in the region.
          if (random.chance(0.1)) expect(Number(await home.get('k'))).toBe(value)
          if (isFar) expect(Number(await withToken())).toBe(value)
          for (let count = 0; count < 3; count++) {
            const seen = Number(await pick(isFar ? [withToken] : [...reads, ...(token === '' ? [] : [withToken])])())
            expect({ seed: SEED, value: seen }).toEqual({ seed: SEED, value })
            at.pairs++
          }
          await large
        }
      }
      wire.setLag(0)
      expect((await callsAt('b', made)) - at.b).toBeGreaterThan(at.pairs / 30)
    },
    90_000 + 30_000 * ROUNDS,
  )

  it('is read there after a move of the home, and while answers wait for a standby', async () => {
    const made = await create('moves')
    const { database_id: id } = made
    const write = async (value: number) => expect((await rest('b', made, ['SET', 'k', value])).status).toBe(200)
    await write(0)
    await untilReplicaAnswers(made)
    const redis = client('b', made)
    const c = await startNode('c', await place(), { host: HOST_OF_C, region: 'us-east-1' })
    const homeIsC = async () => {
      const moves = (await c.api('GET', '/v2/node-moves')).body as DatabaseMove[]
      return moves.some((move) => move.database_id === id && move.state === 'done')
    }
    await waitFor(async () => (await a.api('POST', '/v2/nodes/c/databases', { database_id: id })).status === 200, {
      what: 'the nodes to know each other',
    })
    for (let value = 1; !(await homeIsC()); value++) {
      await write(value)
      expect((await rest('b', made, ['GET', 'k'])).result).toBe(`${value}`)
    }
    await waitFor(() => redis.status === 'end', { what: 'the client to be disconnected' })
    await untilReplicaAnswers(made)

    expect((await c.api('PUT', `/v2/nodes/a/standbys/${id}`, { mode: 'replicated' })).status).toBe(200)
    const isReplicated = async () => ((await c.api('GET', `/v2/redis/database/${id}`)).body as Made).consistent
    await waitFor(isReplicated, { what: 'the standby to have everything' })
    const again = client('b', made)
    for (let value = 1; value <= 30; value++) {
      await again.set('k', value)
      expect(await again.get('k')).toBe(`${value}`)
    }
    // The replica may have what the standby does not have yet, so the home answers until the mode is another one.
    const before = await callsAt('b', made)
    await again.get('k')
    expect(await callsAt('b', made)).toBe(before)
    expect((await c.api('PUT', `/v2/node-standbys/${id}`, { mode: 'async' })).status).toBe(200)
    await untilReplicaAnswers(made, () => again.get('k'))
    expect((await c.api('DELETE', `/v2/redis/database/${id}`)).body).toBe('OK')
    expect(filesAtB()).not.toContain(id)
    await c.stop()
  })

  it('is read at its home while the node of the region is away, or at another node of the region', async () => {
    const made = await create('alone')
    await rest('b', made, ['SET', 'k', 'v'])
    await untilReplicaAnswers(made)
    await b.stop()
    expect((await rest('a', made, ['GET', 'k'])).result).toBe('v')
    await rest('a', made, ['SET', 'k', 'w'])
    b = await startB()
    await knowEachOther()
    await untilReplicaAnswers(made)
    expect((await rest('b', made, ['GET', 'k'], 'x-1-1')).result).toBe('w')

    // With a second node in the region, one keeps the replica and answers the reads of both, with a token or without.
    const d = await startNode('d', await place(), { host: HOSTS.d, region: 'eu-west-1' })
    nodeD = d
    // A connection to the home, from before the other node passes its clients on to the replica's.
    const early = client('d', made)
    expect(await early.set('k', 'x')).toBe('OK')
    const { token } = await rest('d', made, ['SET', 'k', 'x'])
    const readAt = (at: 'b' | 'd', ...with_: string[]) =>
      rest(at, made, ['GET', 'k'], ...with_).then((one) => one.result)
    for (const at of ['b', 'd'] as const) await untilReplicaAnswers(made, () => readAt(at))
    await untilReplicaAnswers(made, () => readAt('b', token))
    const late = client('d', made)
    await untilReplicaAnswers(made, () => late.get('k'))
    const atHome = await callsAt('a', made)
    expect(await Promise.all(Array.from({ length: 100 }, () => late.get('k')))).toEqual(Array(100).fill('x'))
    expect((await callsAt('a', made)) - atHome).toBeLessThan(50)
    // Whatever a client does through one of them, it reads through the other.
    const before = await callsAt('b', made)
    for (let value = 1; value <= 60; value++) {
      wire.setLag([0, 1, 5][value % 3] ?? 0)
      const near = [() => early.set('k', value), () => late.set('k', value), () => rest('d', made, ['SET', 'k', value])]
      await near[value % near.length]?.()
      for (const read of [() => readAt('b'), () => readAt('d'), () => late.get('k')])
        expect(Number(await read())).toBe(value)
    }
    wire.setLag(0)
    expect(await callsAt('b', made)).toBeGreaterThan(before)
    await rest('d', made, ['SET', 'k', 'x'])
    await b.stop()
    expect(await readAt('d')).toBe('x')
    await waitFor(() => readdirSync(join(d.place.dataDir, 'databases')).includes(made.database_id), {
      what: 'the other node to keep the replica',
    })
    await untilReplicaAnswers(made, () => rest('d', made, ['GET', 'k']), 'd')
    await d.stop()
  })
})

afterAll(async () => {
  await Promise.all([a.stop(), b.stop()])
})
