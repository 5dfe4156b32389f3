import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { AwakeRecord } from '../../contract/databases/awake.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { recordedLog } from '../../telemetry/testing/recorded-log.js'
import type { Traffic } from '../deps.js'
import { everyRow } from '../lifecycle.js'
import { ask, create, enginesOf } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import { NO_TRAFFIC } from '../testing/no-traffic.js'

const IDLE_MS = 15 * 60_000
const login = ({ password = '' }: DatabaseRecord): [string, string] => ['default', password]

let server: ManagementServer
let clock: ManualClock
/** What the data plane would report, by database. */
const meters = new Map<string, { lastActivityAtMs: number; holds: number; connections: number }>()
/** Called before connections are released. */
let release: Traffic['release'] = () => true
let proceeded: string[] = []
let failures = 0
let starts = 0
let saves = 0
const { logger, lines } = recordedLog()
/** The check of a snapshot waits for it. */
let gate: Promise<void> | undefined

beforeAll(async () => {
  clock = new ManualClock(Date.now())
  server = await startManagement({
    clock,
    logger,
    awakeDatabases: 2,
    traffic: {
      ...NO_TRAFFIC,
      meterOf: (id) => meters.get(id),
      release: (id, manner) => release(id, manner),
      proceed: (id) => void proceeded.push(id),
    },
    ensure: async (fleet, spec) => {
      if (spec.state === 'running') starts++
      if (failures-- > 0) throw new HomeportError('engine_failed', { reason: 'the test says so' })
      await fleet.ensure(spec)
    },
    save: (fleet, databaseId) => {
      saves++
      return fleet.save(databaseId)
    },
    checkSnapshot: (fleet, file) => gate?.then(() => fleet.checkSnapshot(file)),
  })
})

afterEach(async () => {
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
  meters.clear()
  release = () => true
  failures = 0
  gate = undefined
})

afterAll(() => server.close())

const recordOf = async ({ database_id }: DatabaseRecord): Promise<DatabaseRecord> =>
  (await server.api('GET', `/v2/redis/database/${database_id}`)).body
const why = async ({ database_id }: DatabaseRecord): Promise<AwakeRecord> =>
  (await server.api('GET', `/v2/redis/awake/${database_id}`)).body

/** Advances the clock and lets due work run. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

async function untilAsleep(record: DatabaseRecord): Promise<void> {
  const isAsleep = () =>
    !server.databases.isAwake(record.database_id) && enginesOf(server, record.database_id).length === 0
  await waitFor(isAsleep, { what: 'the database to sleep' })
}

async function sleeping(some: object = {}): Promise<DatabaseRecord> {
  const record = await create(server, some)
  await pass(IDLE_MS + 1_000)
  await untilAsleep(record)
  return record
}

describe('an idle database', () => {
  it('falls asleep with its replicas after its idle time, and wakes with its data for a request', async () => {
    const record = await create(server, { read_regions: ['us-west-1'] })
    await ask(server, record.database_id, 'us-east-1', login(record), ['SET', 'k', 'v'])
    await pass(IDLE_MS - 1)
    expect(await recordOf(record)).toMatchObject({ state: 'active' })
    await pass(1_001)
    await untilAsleep(record)
    expect(await recordOf(record)).toEqual({ ...record, state: 'passive' })
    expect(await why(record)).toMatchObject({ awake: false, state: 'passive', sleeps_at: 0, reasons: [] })
    expect(await ask(server, record.database_id, 'us-east-1', login(record), ['GET', 'k'])).toBe('v')
    expect(await recordOf(record)).toEqual(record)
    await waitFor(() => enginesOf(server, record.database_id).length === 2, { what: 'the replica to wake' })
  })

  it('falls asleep while another one changes all the time', async () => {
    const [record, other] = [await create(server), await create(server)]
    await pass(IDLE_MS - 1_000)
    let changes = 0
    const isAsleepAfterChange = async (): Promise<boolean> => {
      await server.api('POST', `/v2/redis/rename/${other.database_id}`, { name: `change-${++changes}` })
      await pass(100)
      return !server.databases.isAwake(record.database_id)
    }
    await waitFor(isAsleepAfterChange, { what: 'the database to sleep', deadlineMs: 20_000 })
  })

  it('costs nothing while it sleeps: no timer, nothing in the fleet, no write', async () => {
    const timers = clock.pendingTimers
    const record = await sleeping()
    const isQuiet = (): boolean => {
      clock.advance(1_000)
      return clock.pendingTimers <= timers
    }
    await waitFor(isQuiet, { what: 'the last check' })
    await waitFor(() => server.fleet.observe(record.database_id).length === 0, { what: 'the fleet to forget it' })
    const [row] = await everyRow(server.store)
    expect(row?.state).toBe('active')
  })

  it('is started once by many concurrent requests', async () => {
    const { database_id } = await sleeping()
    starts = 0
    const answers = await Promise.all(Array.from({ length: 50 }, () => server.databases.endpoints(database_id)))
    expect([starts, new Set(answers.map(([primary]) => primary?.generation)).size]).toEqual([1, 1])
  })

  it('wakes for a request while its engine is being stopped', async () => {
    const record = await create(server)
    const [before] = await server.databases.endpoints(record.database_id)
    await pass(IDLE_MS + 1_000)
    await waitFor(() => !server.databases.isAwake(record.database_id), { what: 'it to fall asleep', everyMs: 1 })
    const [after] = await server.databases.endpoints(record.database_id)
    expect(after?.generation).toBe((before?.generation ?? 0) + 1)
    expect(await ask(server, record.database_id, 'us-east-1', login(record), ['PING'])).toBe('PONG')
  })

  it('can be deleted while it sleeps', async () => {
    const { database_id } = await sleeping()
    expect((await server.api('DELETE', `/v2/redis/database/${database_id}`)).body).toBe('OK')
    expect((await server.api('GET', `/v2/redis/awake/${database_id}`)).status).toBe(404)
  })
})

describe('a database stays awake', () => {
  it('while clients hold it; its idle time starts when they stop', async () => {
    const record = await create(server)
    const meter = { lastActivityAtMs: clock.now(), holds: 1, connections: 1 }
    meters.set(record.database_id, meter)
    await pass(3 * IDLE_MS)
    expect(server.databases.isAwake(record.database_id)).toBe(true)
    Object.assign(meter, { holds: 0, lastActivityAtMs: clock.now() })
    await pass(IDLE_MS - 1_000)
    expect(server.databases.isAwake(record.database_id)).toBe(true)
    const { reasons, sleeps_at } = await why(record)
    expect(reasons).toEqual([{ kind: 'request', count: 1 }])
    expect(sleeps_at).toBe(Math.floor((meter.lastActivityAtMs + IDLE_MS) / 1000))
    await pass(IDLE_MS)
    await untilAsleep(record)
  })

  it('when a command is in flight at the end of its idle time', async () => {
    const record = await create(server)
    let busy = true
    release = () => !busy
    await pass(IDLE_MS + 1_000)
    await pass(1_000)
    expect(server.databases.isAwake(record.database_id)).toBe(true)
    busy = false
    await waitFor(
      async () => {
        await pass(IDLE_MS)
        return !server.databases.isAwake(record.database_id)
      },
      { what: 'the database to sleep' },
    )
  })

  it('during a backup, and names the backup as the reason', async () => {
    const record = await sleeping()
    let open = (): void => {}
    gate = new Promise((resolve) => {
      open = resolve
    })
    const backup = server.api('POST', `/v2/redis/create-backup/${record.database_id}`, { name: 'b' })
    await waitFor(async () => (await why(record)).reasons[0]?.kind === 'backup', { what: 'the backup' })
    await pass(3 * IDLE_MS)
    expect(await why(record)).toMatchObject({ awake: true, sleeps_at: 0, reasons: [{ kind: 'backup', count: 1 }] })
    open()
    expect((await backup).body).toBe('OK')
    await pass(IDLE_MS + 1_000)
    await untilAsleep(record)
  })
})

describe('a change of a sleeping database', () => {
  it('does not wake it for a short change, which applies when it wakes', async () => {
    const record = await sleeping()
    const { database_id: id } = record
    const { body } = await server.api('POST', `/v2/redis/reset-password/${id}`)
    for (const verb of ['enable-eviction', 'enable-autoupgrade'])
      expect((await server.api('POST', `/v2/redis/${verb}/${id}`)).body).toBe('OK')
    expect((await server.api('POST', `/v2/redis/rename/${id}`, { name: 'other' })).status).toBe(200)
    expect(server.databases.isAwake(id)).toBe(false)
    await expect(ask(server, id, 'us-east-1', login(record), ['PING'])).rejects.toThrow()
    expect(await ask(server, id, 'us-east-1', login(body), ['PING'])).toBe('PONG')
    expect(await recordOf(record)).toMatchObject({ state: 'active', database_name: 'other', eviction: true })
  })

  it('wakes it for a change of the engines', async () => {
    const record = await sleeping()
    const path = `/v2/redis/update-regions/${record.database_id}`
    expect((await server.api('POST', path, { read_regions: ['us-west-1'] })).body).toBe('OK')
    expect(enginesOf(server, record.database_id)).toHaveLength(2)
    expect(await recordOf(record)).toMatchObject({ state: 'active', read_regions: ['us-west-1'] })
  })
})

describe('a failed wake-up', () => {
  it('rejects the waiting requests, and only the next request retries', async () => {
    const record = await sleeping()
    failures = 1
    starts = 0
    await expect(server.databases.endpoints(record.database_id)).rejects.toThrow()
    await waitFor(async () => (await recordOf(record)).state === 'passive', { what: 'the database to sleep again' })
    expect(starts).toBe(1)
    expect(await ask(server, record.database_id, 'us-east-1', login(record), ['PING'])).toBe('PONG')
  })
})

describe('a suspended database', () => {
  it('falls asleep at once, disconnects its subscribers, and is not woken by clients', async () => {
    const record = await create(server)
    const { database_id: id } = record
    meters.set(id, { lastActivityAtMs: clock.now(), holds: 1, connections: 1 })
    const manners: string[] = []
    release = (_id, manner) => {
      manners.push(manner)
      return true
    }
    const row = server.databases.directory.rowOf(id)
    if (row) server.databases.directory.put({ ...row, state: 'suspended' })
    await pass(1_000)
    await untilAsleep(record)
    expect(manners).toEqual(['and-send-away'])
    await expect(server.databases.endpoints(id)).rejects.toThrow('suspended')
    expect((await server.api('POST', `/v2/redis/create-backup/${id}`, { name: 'b' })).body).toBe('OK')
    await pass(1_000)
    await untilAsleep(record)
  })
})

describe('a database that is resumed before its engines could stop', () => {
  it('serves what its clients have sent meanwhile', async () => {
    const record = await create(server)
    const { database_id: id } = record
    proceeded = []
    let tries = 0
    release = () => ++tries > 1
    const row = server.databases.directory.rowOf(id)
    if (row) server.databases.directory.put({ ...row, state: 'suspended' })
    await waitFor(
      async () => {
        await pass(100)
        return tries > 0
      },
      { what: 'the first try' },
    )
    expect(proceeded).toEqual([])
    if (row) server.databases.directory.put(row)
    expect(proceeded).toEqual([id])
    expect(server.databases.isAwake(id)).toBe(true)
  })
})

describe('a database without a log', () => {
  it('stays awake while its data cannot be saved, and sleeps when it can', async () => {
    const record = await create(server, { db_type: 'bolt' })
    const id = record.database_id
    await ask(server, id, 'us-east-1', login(record), ['SET', 'k', 'v'])
    // Nothing can replace it.
    const snapshot = join(server.dataDir, 'databases', id, 'us-east-1', 'dump.rdb')
    rmSync(snapshot, { force: true })
    mkdirSync(join(snapshot, 'directory'), { recursive: true })
    const logged = (): number => lines.filter(({ event }) => event === 'database_sleep_failed').length
    await pass(IDLE_MS + 1_000)
    await waitFor(() => logged() === 1, { what: 'the first try' })
    const before = saves
    const isTriedAgain = async (): Promise<boolean> => {
      await pass(IDLE_MS)
      return saves > before + 1
    }
    await waitFor(isTriedAgain, { what: 'more tries' })
    expect([server.databases.isAwake(id), enginesOf(server, id).length, logged()]).toEqual([true, 1, 1])
    rmSync(snapshot, { recursive: true })
    const isAsleep = async (): Promise<boolean> => {
      await pass(IDLE_MS)
      return !server.databases.isAwake(id) && enginesOf(server, id).length === 0
    }
    await waitFor(isAsleep, { what: 'the database to sleep' })
    expect(await ask(server, id, 'us-east-1', login(record), ['GET', 'k'])).toBe('v')
  })
})

describe('when too many databases are awake', () => {
  it('the longest idle ones fall asleep early', async () => {
    const records = [await create(server)]
    for (let i = 0; i < 3; i++) {
      await pass(1_000)
      records.push(await create(server))
    }
    await pass(4_500)
    for (const record of records.slice(0, 2)) await untilAsleep(record)
    await pass(60_000)
    const awake = records.map(({ database_id }) => server.databases.isAwake(database_id))
    expect(awake).toEqual([false, false, true, true])
  })
})
