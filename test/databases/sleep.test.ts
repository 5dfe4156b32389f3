import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { AwakeRecord } from '../../src/contract/databases/awake.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { DEFAULT_PLANS } from '../../src/contract/databases/plans.js'
import {
  type Place,
  placeFlags,
  processesMarked,
  type RunningHomeport,
  runHomeport,
  startHomeport,
  tempDir,
  waitFor,
} from '../support/index.js'

const IDLE_NS = 400_000_000
const least = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }

/** A file of plans in which databases sleep after less than half a second. */
function hastyPlans(): string {
  const path = join(tempDir(), 'plans.json')
  writeFileSync(path, JSON.stringify({ payg: { ...DEFAULT_PLANS.payg, db_store_max_idle: IDLE_NS } }))
  return path
}

let server: RunningHomeport
const plans = hastyPlans()

const start = (place: Partial<Place> = {}) => startHomeport({ ...place, args: ['--plans-file', plans] })

beforeAll(async () => {
  server = await start()
})

async function create(some: object = {}): Promise<Required<DatabaseRecord>> {
  const { status, body } = await server.api('POST', '/v2/redis/database', { ...least, ...some })
  expect([status, body]).toEqual([200, expect.objectContaining({ state: 'active' })])
  return body as Required<DatabaseRecord>
}

const get = async ({ database_id }: DatabaseRecord): Promise<DatabaseRecord> =>
  (await server.api('GET', `/v2/redis/database/${database_id}`)).body as DatabaseRecord
const why = async ({ database_id }: DatabaseRecord): Promise<AwakeRecord> =>
  (await server.api('GET', `/v2/redis/awake/${database_id}`)).body as AwakeRecord
const engines = ({ database_id }: DatabaseRecord) => processesMarked(join('databases', database_id))

async function untilAsleep(record: DatabaseRecord): Promise<void> {
  const sleeps = async () => (await get(record)).state === 'passive' && engines(record).length === 0
  await waitFor(sleeps, { what: 'the database to sleep' })
}

/** A client without automatic reconnection: a lost connection fails the test. */
function connect({ port, password }: Required<DatabaseRecord>): Redis {
  const redis = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null })
  redis.on('error', () => undefined)
  onTestFinished(() => redis.disconnect())
  return redis
}

const rest = async ({ rest_url, rest_token }: Required<DatabaseRecord>, ...command: string[]): Promise<unknown> => {
  const headers = { authorization: `Bearer ${rest_token}` }
  return (await fetch(rest_url, { method: 'POST', headers, body: JSON.stringify(command) })).json()
}

describe('an unused database', () => {
  it('sleeps under open connections, and wakes for the next command on one of them or over REST', async () => {
    const record = await create({ read_regions: ['us-west-1'] })
    const client = connect(record)
    const afterTransaction = connect(record)
    expect(await client.set('k', 'v')).toBe('OK')
    await afterTransaction.multi().incr('n').exec()
    await untilAsleep(record)
    expect(await why(record)).toMatchObject({ awake: false, connections: 2, reasons: [] })
    expect(await client.get('k')).toBe('v')
    expect((await get(record)).state).toBe('active')
    await untilAsleep(record)
    expect(await rest(record, 'GET', 'k')).toEqual({ result: 'v' })
    await untilAsleep(record)
    expect(await afterTransaction.incr('n')).toBe(2)
    expect([client.status, afterTransaction.status]).toEqual(['ready', 'ready'])
  })

  it('wakes once for many concurrent commands and fails none', async () => {
    const record = await create()
    const clients = Array.from({ length: 20 }, () => connect(record))
    await Promise.all(clients.map((client) => client.ping()))
    await untilAsleep(record)
    const answers = await Promise.all([
      ...clients.map((client, index) => client.incrby('n', index)),
      ...clients.map(() => rest(record, 'PING')),
    ])
    expect(answers.slice(20)).toEqual(clients.map(() => ({ result: 'PONG' })))
    expect(await clients[0]?.get('n')).toBe('190')
    expect(engines(record)).toHaveLength(1)
  })

  it('fails no command that arrives while it falls asleep', async () => {
    const record = await create()
    const client = connect(record)
    const lives = new Set<number | undefined>()
    let sum = 0
    // Pauses around the idle time, so that commands meet the engine awake, stopping, stopped and starting.
    for (let round = 0; round < 8; round++) {
      expect(await client.incr('n')).toBe(++sum)
      lives.add(engines(record)[0]?.pid)
      const until = performance.now() + IDLE_NS / 1e6 + round * 40
      await waitFor(() => performance.now() >= until, { what: 'the pause', everyMs: 5 })
    }
    expect(lives.size).toBeGreaterThan(1)
    expect(client.status).toBe('ready')
  })
})

describe('a database stays awake', () => {
  it('for clients that block, subscribe, monitor or are in a transaction, and why-awake says so', async () => {
    const record = await create()
    const [blocking, subscriber, monitoring, transacting] = Array.from({ length: 4 }, () => connect(record))
    const popped = blocking?.blpop('queue', 0)
    await subscriber?.subscribe('news')
    await transacting?.call('MULTI')
    await monitoring?.call('MONITOR')
    const kinds = async () => (await why(record)).reasons.map(({ kind }) => kind)
    const all = ['blocking', 'subscription', 'monitor', 'transaction']
    await waitFor(async () => (await kinds()).length === all.length, { what: 'the reasons' })
    expect(await kinds()).toEqual(all)
    const [engine] = engines(record)
    const until = performance.now() + (3 * IDLE_NS) / 1e6
    await waitFor(() => performance.now() >= until, { what: 'more than the idle time to pass' })
    expect(engines(record)).toEqual([engine])
    const said = await runHomeport(['db', 'why-awake', record.database_id, ...placeFlags(server.place)])
    expect(said.stdout).toContain('client in a blocking command')
    await connect(record).rpush('queue', 'x')
    expect(await popped).toEqual(['queue', 'x'])
    for (const client of [subscriber, monitoring, transacting]) client?.disconnect()
    await untilAsleep(record)
  })
})

describe('a start of the server', () => {
  it('wakes nothing, also after a kill, and the first command finds the data', async () => {
    const record = await create()
    expect(await connect(record).set('k', 'v')).toBe('OK')
    await server.kill('SIGKILL')
    server = await start(server.place)
    expect(await get(record)).toEqual({ ...record, state: 'passive' })
    expect(engines(record)).toEqual([])
    expect(await connect(record).get('k')).toBe('v')
  })
})
