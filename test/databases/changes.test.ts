import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import { processesMarked, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'

/** The fields of a record that these tests use. */
interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
  readonly rest_token: string
  readonly rest_url: string
  readonly tls: boolean
  readonly modifying_state: string
  readonly read_regions: readonly string[]
  readonly db_memory_threshold: number
}

/** Kills in the middle of changes; `npm run crash -- --only changes` has more. */
const KILLS = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 2)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
/** Longer than the changes take, so that some kills come after their end. */
const LATEST_KILL_MS = 60

const least = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }

async function create(server: RunningHomeport, some: object = {}): Promise<Database> {
  const { status, body } = await server.api('POST', '/v2/redis/database', { ...least, ...some })
  expect([status, body]).toEqual([200, expect.objectContaining({ database_id: expect.any(String) })])
  return body as Database
}

const get = async (server: RunningHomeport, { database_id }: Database): Promise<Database> =>
  (await server.api('GET', `/v2/redis/database/${database_id}`)).body as Database

interface Client {
  readonly redis: Redis
  readonly closed: () => boolean
}

function connect({ port }: Pick<Database, 'port'>, password: string, tls?: { ca: string }): Client {
  const secure = tls ? { tls: { ...tls, servername: 'localhost' } } : {}
  const redis = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null, ...secure })
  let isClosed = false
  redis.on('error', () => undefined)
  redis.on('close', () => {
    isClosed = true
  })
  onTestFinished(() => redis.disconnect())
  return { redis, closed: () => isClosed }
}

async function rest({ rest_url }: Database, token: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${rest_url}/ping`, { headers: { authorization: `Bearer ${token}` } })
  return { status: response.status, body: await response.json() }
}

let server: RunningHomeport

beforeAll(async () => {
  server = await startHomeport()
})
afterAll(() => console.log(`changes: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${KILLS}`))

describe('a change of a database that is in use', () => {
  const change = (database: Database, verb: string, body?: unknown) =>
    server.api('POST', `/v2/redis/${verb}/${database.database_id}`, body)

  it('resets the credentials: when the answer arrives, old ones are invalid and their connections closed', async () => {
    const database = await create(server)
    const old = connect(database, database.password)
    const subscriber = connect(database, database.password)
    await subscriber.redis.subscribe('news')
    expect(await old.redis.set('k', 'v')).toBe('OK')
    const fresh = (await change(database, 'reset-password')).body as Database
    await waitFor(() => old.closed() && subscriber.closed(), { what: 'the old connections to close' })
    await expect(connect(database, database.password).redis.get('k')).rejects.toThrow(/WRONGPASS|closed/)
    expect(await connect(fresh, fresh.password).redis.get('k')).toBe('v')
    expect(await rest(database, database.rest_token)).toMatchObject({ status: 401 })
    expect(await rest(fresh, fresh.rest_token)).toEqual({ status: 200, body: { result: 'PONG' } })
  })

  it('lets only the addresses of the allow list in, over both protocols', async () => {
    const database = await create(server)
    const inside = connect(database, database.password)
    expect(await inside.redis.ping()).toBe('PONG')
    expect((await change(database, 'update-allowlist', { allowed_ips: ['203.0.113.0/24'] })).status).toBe(200)
    await waitFor(inside.closed, { what: 'the connection to close' })
    await expect(connect(database, database.password).redis.ping()).rejects.toThrow()
    expect(await rest(database, database.rest_token)).toEqual({
      status: 403,
      body: { error: expect.stringContaining('is not in the allow list') },
    })
    expect((await change(database, 'update-allowlist', { allowed_ips: ['127.0.0.0/8'] })).status).toBe(200)
    expect(await connect(database, database.password).redis.ping()).toBe('PONG')
    expect(await rest(database, database.rest_token)).toMatchObject({ status: 200 })
  })

  it('lets the port speak TLS', async () => {
    const database = await create(server)
    const clear = connect(database, database.password)
    expect(await clear.redis.set('k', 'v')).toBe('OK')
    const { status, body } = await change(database, 'enable-tls', null)
    expect([status, body]).toEqual([200, expect.objectContaining({ tls: true })])
    await waitFor(clear.closed, { what: 'the connection in clear to close' })
    const ca = readFileSync(join(server.place.dataDir, 'tls', 'ca.crt'), 'utf8')
    expect(await connect(database, database.password, { ca }).redis.get('k')).toBe('v')
  })

  it('adds and removes read regions without a client of the primary noticing', async () => {
    const database = await create(server)
    const client = connect(database, database.password)
    let acknowledged = 0
    let writing = true
    const writes = (async () => {
      while (writing) acknowledged = await client.redis.incr('n')
    })()
    for (const read_regions of [['us-west-1'], ['us-west-1', 'eu-west-1'], []]) {
      expect((await change(database, 'update-regions', { read_regions })).body).toBe('OK')
    }
    writing = false
    await writes
    expect([await client.redis.get('n'), client.closed()]).toEqual([String(acknowledged), false])
  })
})

describe('a server that is killed in the middle of changes', () => {
  it('has made each change completely or not at all, and accepts further ones', {
    timeout: 60_000 + KILLS * 30_000,
  }, async () => {
    const random = randomFrom(SEED)
    let database = await create(server, { plan: 'fixed_1gb' })
    const writer = connect(database, database.password)
    await writer.redis.set('k', 'v')
    for (let kill = 0; kill < KILLS; kill++) {
      const before = await get(server, database)
      const wanted = before.read_regions.length === 0 ? ['us-west-1'] : []
      const plan = before.db_memory_threshold > 2 ** 31 ? 'fixed_1gb' : 'fixed_5gb'
      const path = `/v2/redis/update-regions/${database.database_id}`
      const answers = [
        server.api('POST', path, { read_regions: wanted }),
        server.api('POST', `/v2/redis/change-plan/${database.database_id}`, { plan }),
        server.api('POST', `/v2/redis/reset-password/${database.database_id}`),
      ]
      const settled = Promise.allSettled(answers)
      // Half of the kills come while the changes begin.
      await passMs(random() ** 2 * LATEST_KILL_MS)
      await server.kill('SIGKILL')
      const done = (await settled).map((answer) => answer.status === 'fulfilled' && answer.value.status === 200)
      server = await startHomeport(server.place)
      const after = await get(server, database)
      expect(after.modifying_state).toBe('')
      if (done[0]) expect(after.read_regions).toEqual(wanted)
      expect([before.read_regions, wanted]).toContainEqual(after.read_regions)
      expect(await connect(after, after.password).redis.get('k')).toBe('v')
      const isNew = after.password !== database.password
      if (done[2]) expect(isNew).toBe(true)
      if (isNew) await expect(connect(after, database.password).redis.get('k')).rejects.toThrow(/WRONGPASS|closed/)
      const engines = () => processesMarked(join(server.place.dataDir, 'databases', database.database_id))
      await waitFor(() => engines().length === 1 + after.read_regions.length, { what: 'the engines of the record' })
      database = after
    }
  })
})

/** Waits this long, to kill the server at another moment of a change each time. */
function passMs(ms: number): Promise<unknown> {
  const since = performance.now()
  return waitFor(() => performance.now() - since >= ms, { what: 'the moment to kill', everyMs: 1 })
}
