/** Usage of databases with a real store and real engines. The tests count in the meter in place of a data plane. */

import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { openSqlite } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { DEFAULT_PLANS, type PlanTable } from '../../contract/databases/plans.js'
import { type DatabaseStats, DatabaseStatsSchema, STATS_PERIODS } from '../../contract/databases/stats.js'
import { compileChecker } from '../../http/index.js'
import { COMMAND_INDEX, renderMetrics } from '../../telemetry/index.js'
import { ask, create } from '../testing/checks.js'
import { type ManagementServer, startManagement } from '../testing/management.js'
import * as usage from '../transactions/usage.js'
import { databaseFigures } from './metrics.js'
import { ONE_READ, standingOf } from './testing/rows.js'
import { RollUps } from './writer.js'

const MIB = 2 ** 20
const FLUSH_MS = 10_000
const DAY_MS = 24 * 60 * 60 * 1000
/** 15 June 2026, a Monday, in the middle of a minute. */
const START = Date.UTC(2026, 5, 15, 12, 0, 30)

/** A request costs 10 US dollars, and the two smallest fixed plans hold little. */
const plans: PlanTable = {
  ...DEFAULT_PLANS,
  payg: { ...DEFAULT_PLANS.payg, price_per_100k_commands: 1_000_000 },
  fixed_250mb: { ...DEFAULT_PLANS.fixed_250mb, db_memory_threshold: 4 * MIB },
  fixed_1gb: { ...DEFAULT_PLANS.fixed_1gb, db_memory_threshold: 64 * MIB },
}

const HOUR_MS = 60 * 60 * 1000

const checkStats = compileChecker(DatabaseStatsSchema, 'body')

let clock: ManualClock
let server: ManagementServer

/** The transactions since the last reset. */
let transactions: string[] = []
/** The name of a transaction that fails. */
let failing: string | undefined

const open = ({ dataDir, redisPorts }: Partial<ManagementServer> = {}) =>
  startManagement({
    plans,
    clock,
    ...(dataDir && redisPorts ? { dataDir, redisPorts } : {}),
    onTransaction: (name) => {
      transactions.push(name)
      if (name === failing) throw new Error(`${name} fails`)
    },
  })

beforeAll(async () => {
  clock = new ManualClock(START)
  server = await open()
})

afterEach(async () => {
  vi.restoreAllMocks()
  failing = undefined
  for (const { database_id } of await server.databases.list(server.owner, 'hide'))
    await server.databases.remove(server.owner, database_id)
})

afterAll(() => server.close())

const ledgerOf = ({ database_id }: DatabaseRecord) => server.databases.usage.usageOf(database_id)
const login = ({ password = '' }: DatabaseRecord): [string, string] => ['default', password]

/** Sends commands to the engine and counts them as the data plane would; those beyond the limit are not sent. */
async function send(record: DatabaseRecord, command: string[], times = 1): Promise<number> {
  const { meter } = ledgerOf(record)
  const index = COMMAND_INDEX.get(command[0] ?? '') ?? 0
  await ask(server, record.database_id, 'us-east-1', login(record), command)
  let sent = 0
  for (; sent < times && ledgerOf(record).admission.kind === 'open'; sent++) {
    meter.countCommand(index, 1)
    meter.month.requests++
    meter.bytesIn += 10
    meter.bytesOut += 5
    ;(command[0] === 'GET' ? meter.readLatency : meter.writeLatency).record(1000)
  }
  meter.lastActivityAtMs = clock.now()
  return sent
}

/** Advances the clock by a flush interval and waits until all usage is stored. */
async function flush(): Promise<void> {
  // A jump of the clock may have started a flush that is still active.
  await server.databases.usage.flushed
  clock.advance(FLUSH_MS)
  await waitFor(() => server.databases.usage.ledgers.every((ledger) => !ledger.hasChanged && ledger.pending.isEmpty), {
    what: 'the ledgers to be written',
  })
}

async function statsOf({ database_id }: DatabaseRecord, period = '1h'): Promise<DatabaseStats> {
  const { status, body } = await server.api('GET', `/v2/redis/stats/${database_id}?period=${period}`)
  expect([status, body.error]).toEqual([200, undefined])
  checkStats(body)
  return body
}

const lastOf = (series: DatabaseStats['read'] | undefined) => series?.at(-1)?.y
const sumOf = (series: DatabaseStats['read'] | undefined) => series?.reduce((sum, { y }) => sum + y, 0)
const stateOf = async ({ database_id }: DatabaseRecord) =>
  (await server.api('GET', `/v2/redis/database/${database_id}`)).body.state
const actsOn = async ({ database_id }: DatabaseRecord) => {
  const log = await server.store.run(accounts.auditLog, { accountId: server.owner.accountId, limit: 100 })
  return log.filter((entry) => entry.entity === database_id).map(({ action, source }) => [action, source])
}

describe('the statistics of a database', () => {
  it('are all 0 for one that was never used', async () => {
    const stats = await statsOf(await create(server))
    const series = Object.values(stats).filter((value) => Array.isArray(value) && value.length === 60)
    expect(series).toHaveLength(14)
    for (const points of series as DatabaseStats['read'][]) expect(sumOf(points)).toBe(0)
    expect(stats).toMatchObject({ command_counts: [], total_monthly_requests: 0, total_monthly_billing: 0 })
  })

  it('count up to the last command, before and after usage is stored', async () => {
    const record = await create(server)
    await send(record, ['SET', 'k', 'v'], 3)
    await send(record, ['GET', 'k'], 6)
    const looksRight = (stats: DatabaseStats): void => {
      const { daily_net_commands, daily_read_requests, daily_write_requests, dailybandwidth } = stats
      expect([daily_net_commands, daily_read_requests, daily_write_requests, dailybandwidth]).toEqual([9, 6, 3, 135])
      expect(stats).toMatchObject({
        total_monthly_requests: 9,
        total_monthly_read_requests: 6,
        total_monthly_write_requests: 3,
        total_monthly_script_requests: 0,
        total_monthly_bandwidth: 135,
        total_monthly_billing: 90,
        days: ['Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday', 'Monday'],
      })
      expect(lastOf(stats.dailyrequests)).toBe(9)
      expect(lastOf(stats.dailybilling)).toBe(90)
      expect(lastOf(stats.latencymean)).toBe(1)
      expect(lastOf(stats.read_latency_99)).toBeGreaterThanOrEqual(1)
      expect(lastOf(stats.read_latency_99)).toBeLessThan(1.3)
    }
    looksRight(await statsOf(record))
    // The current minute is half over.
    expect(lastOf((await statsOf(record)).throughput)).toBe(9 / 30)
    await flush()
    const stats = await statsOf(record)
    looksRight(stats)
    expect(stats.command_counts.map(({ metric_identifier: name, data_points }) => [name, lastOf(data_points)])).toEqual(
      [
        ['GET', 6],
        ['SET', 3],
      ],
    )
    expect([lastOf(stats.throughput), lastOf(stats.read), lastOf(stats.write)]).toEqual([9 / 40, 0.15, 0.075])
    expect([lastOf(stats.keyspace), lastOf(stats.hits), lastOf(stats.misses)]).toEqual([1, 0.025, 0])
    expect(lastOf(stats.diskusage)).toBeGreaterThan(0)
    // What the engine needs for itself does not count.
    expect(stats.current_storage).toBeGreaterThan(0)
    expect(stats.current_storage).toBeLessThan(500_000)
    expect(stats.throughput.at(-1)?.x).toBe('2026-06-15 12:00:00 +0000 UTC')
  })

  it('are right for every period, over days, roll-ups and a restart', async () => {
    const record = await create(server)
    for (const minutes of [0, 14, 90, 60 * 30]) {
      clock.advance(minutes * 60_000)
      await send(record, ['GET', 'k'], 5)
      await flush()
      expect((await statsOf(record)).current_storage).toBe(0)
    }
    const check = async (): Promise<void> => {
      const seen = await Promise.all(STATS_PERIODS.map((period) => statsOf(record, period)))
      const counted = seen.map(({ command_counts }) => sumOf(command_counts[0]?.data_points))
      expect(Object.fromEntries(STATS_PERIODS.map((period, index) => [period, counted[index]]))).toEqual({
        '1h': 5,
        '3h': 5,
        '12h': 5,
        '1d': 5,
        '3d': 20,
        '7d': 20,
        '30d': 20,
      })
      for (const [index, period] of STATS_PERIODS.entries()) {
        expect(seen[index]?.throughput).toHaveLength(period === '30d' ? 240 : 60)
        expect(lastOf(seen[index]?.keyspace)).toBe(0)
        expect(seen[index]?.total_monthly_requests).toBe(20)
      }
      expect(seen[0]?.dailyrequests.slice(-3).map(({ y }) => y)).toEqual([0, 15, 5])
    }
    await check()
    clock.advance(12 * 60_000)
    await server.close()
    server = await open(server)
    await check()
    expect(ledgerOf(record).meter.month.requests).toBe(20)
  })

  it('refuse an unknown period and an unknown database', async () => {
    const record = await create(server)
    const refused = await server.api('GET', `/v2/redis/stats/${record.database_id}?period=2h`)
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining('1h, 3h, 12h')])
    expect((await server.api('GET', '/v2/redis/stats/none')).status).toBe(404)
  })
})

describe('metrics', () => {
  it('are the figures of each database', async () => {
    const record = await create(server, { database_name: 'say "hi"', budget: 200 })
    await send(record, ['SET', 'k', 'v'], 2)
    await send(record, ['GET', 'k'], 3)
    await flush()
    const labels = `database_id="${record.database_id}",database_name="say \\"hi\\"",plan="payg"`
    const { database_id: databaseId } = record
    const metered = { ledger: ledgerOf(record), isAwake: server.databases.isAwake(databaseId) }
    const seen = await renderMetrics(databaseFigures([metered], clock.now()))
    for (const line of [
      `homeport_database_commands_total{${labels},kind="reads"} 3`,
      `homeport_database_commands_total{${labels},kind="writes"} 2`,
      `homeport_database_latency_samples_total{${labels},kind="reads"} 3`,
      `homeport_database_bytes_total{${labels},kind="in"} 50`,
      `homeport_database_keys{${labels}} 1`,
      `homeport_database_awake{${labels}} 1`,
      `homeport_database_suspended{${labels}} 0`,
      `homeport_database_month_requests{${labels}} 5`,
      `homeport_database_month_cost_dollars{${labels}} 50`,
      `homeport_database_budget_dollars{${labels}} 200`,
    ]) {
      expect(seen.split('\n')).toContain(line)
    }
  })
})

describe('an unused database', () => {
  it('causes no write and no sample of its engine', async () => {
    const record = await create(server)
    await send(record, ['GET', 'k'])
    await flush()
    for (let times = 0; times < 7; times++) {
      clock.advance(12 * 60_000)
      await statsOf(record)
    }
    transactions = []
    const looked = vi.spyOn(server.fleet, 'sample')
    for (let times = 0; times < 100; times++) {
      clock.advance(FLUSH_MS)
      await Promise.resolve()
    }
    expect(transactions).toEqual([])
    expect(looked).not.toHaveBeenCalled()
  })

  it('is charged the price of its plan', async () => {
    const record = await create(server, { plan: 'fixed_250mb' })
    clock.advance(3 * DAY_MS)
    const { total_monthly_billing, dailybilling, total_monthly_requests } = await statsOf(record)
    expect([total_monthly_billing, total_monthly_requests]).toEqual([1, 0])
    expect(dailybilling.at(-2)?.y).toBeCloseTo(10 / 30)
  })
})

describe('a budget', () => {
  it('suspends the database when it is spent, until it is raised', async () => {
    const record = await create(server, { budget: 100 })
    expect(await send(record, ['GET', 'k'], 50)).toBe(10)
    await waitFor(async () => (await stateOf(record)) === 'suspended', { what: 'the suspension' })
    expect((await statsOf(record)).total_monthly_billing).toBe(100)
    expect(await actsOn(record)).toContainEqual(['Suspend Database', 'SYSTEM'])
    const renamed = await server.api('POST', `/v2/redis/rename/${record.database_id}`, { name: 'still mine' })
    expect(renamed.body).toMatchObject({ database_name: 'still mine', state: 'suspended' })
    await server.api('PATCH', `/v2/redis/update-budget/${record.database_id}`, { budget: 130 })
    expect(ledgerOf(record).admission.kind).toBe('open')
    expect(await stateOf(record)).not.toBe('suspended')
    expect(await send(record, ['GET', 'k'], 50)).toBe(3)
    await waitFor(async () => (await stateOf(record)) === 'suspended', { what: 'the second suspension' })
    expect((await actsOn(record)).map(([action]) => action)).toContain('Resume Database')
  })

  it('suspends only after the usage is stored', async () => {
    const record = await create(server, { budget: 100 })
    failing = 'usage.add'
    expect(await send(record, ['GET', 'k'], 50)).toBe(10)
    clock.advance(FLUSH_MS)
    await server.databases.usage.flushed
    expect([await stateOf(record), ledgerOf(record).admission.kind]).toEqual(['active', 'refused'])
    failing = undefined
    clock.advance(FLUSH_MS)
    await waitFor(async () => (await stateOf(record)) === 'suspended', { what: 'the suspension' })
    expect((await statsOf(record)).total_monthly_billing).toBe(100)
    const ledger = ledgerOf(await create(server, { budget: 100 }))
    ledger.meter.month.requests += 10
    await server.api('DELETE', `/v2/redis/database/${ledger.row.database_id}`)
    expect(ledger.admission.kind).toBe('refused')
  })

  it('stays spent after a restart, and does not apply on a plan that does not charge for usage', async () => {
    const record = await create(server, { budget: 50 })
    await send(record, ['GET', 'k'], 50)
    await waitFor(async () => (await stateOf(record)) === 'suspended', { what: 'the suspension' })
    await server.close()
    server = await open(server)
    expect(await stateOf(record)).toBe('suspended')
    expect(ledgerOf(record).admission).toMatchObject({ kind: 'refused', error: { code: 'budget_exceeded' } })
    const changed = await server.api('POST', `/v2/redis/change-plan/${record.database_id}`, { plan: 'fixed_1gb' })
    expect(changed).toEqual({ status: 200, body: 'OK' })
    expect([await stateOf(record), ledgerOf(record).admission.kind]).toEqual(['active', 'open'])
  })

  it('suffices again in a new month, also for an idle database', async () => {
    const record = await create(server, { budget: 50 })
    await send(record, ['GET', 'k'], 50)
    await waitFor(async () => (await stateOf(record)) === 'suspended', { what: 'the suspension' })
    const month = new Date(clock.now()).getUTCMonth()
    while (new Date(clock.now()).getUTCMonth() === month) clock.advance(DAY_MS / 4)
    await waitFor(async () => (await stateOf(record)) !== 'suspended', { what: 'the end of the suspension' })
    expect((await statsOf(record)).total_monthly_requests).toBe(0)
    expect(await send(record, ['GET', 'k'], 50)).toBe(5)
  })
})

describe('auto upgrade', () => {
  const fill = async (record: DatabaseRecord): Promise<void> => {
    const script = "for i = 1, 70 do redis.call('SET', 'k' .. i, string.rep('x', 65536)) end"
    const full = ask(server, record.database_id, 'us-east-1', login(record), ['EVAL', script, '0'])
    await full.catch(() => undefined)
    ledgerOf(record).meter.lastActivityAtMs++
  }
  const sizeOf = async ({ database_id }: DatabaseRecord) =>
    (await server.api('GET', `/v2/redis/database/${database_id}`)).body.db_resource_size

  it('moves a database that outgrows its fixed plan to the next one, and records it', async () => {
    const record = await create(server, { plan: 'fixed_250mb' })
    await server.api('POST', `/v2/redis/enable-autoupgrade/${record.database_id}`)
    await fill(record)
    await flush()
    await waitFor(async () => (await sizeOf(record)) === 'M', { what: 'the upgrade' })
    const { body } = await server.api('GET', `/v2/redis/database/${record.database_id}`)
    expect(body.last_plan_upgrade_time).toBe(Math.floor(clock.now() / 1000))
    expect(await actsOn(record)).toContainEqual(['Change Database Plan', 'SYSTEM'])
  })

  it('leaves databases with eviction or without auto upgrade alone', async () => {
    const evicts = await create(server, { plan: 'fixed_250mb', eviction: true })
    await server.api('POST', `/v2/redis/enable-autoupgrade/${evicts.database_id}`)
    const stays = await create(server, { plan: 'fixed_250mb' })
    for (const record of [evicts, stays]) await fill(record)
    await flush()
    await flush()
    expect([await sizeOf(evicts), await sizeOf(stays)]).toEqual(['S', 'S'])
  })
})

describe('the series of a database', () => {
  it('stay bounded over time', async () => {
    const record = await create(server)
    await send(record, ['GET', 'k'])
    await flush()
    const updates = [{ standing: standingOf(record, clock.now()), days: [], sample: ONE_READ }]
    const hours = 3
    const now = clock.now() + 40 * DAY_MS
    const starts = Array.from(
      { length: 40 * (24 / hours) },
      (_, back) => now - (now % 60_000) - (back + 1) * hours * HOUR_MS,
    )
    await Promise.all(starts.reverse().map((start) => server.store.run(usage.add, { start, updates })))
    const work = new RollUps({ store: server.store, logger: { warn: (event) => expect(event).toBeUndefined() } })
    work.begin(now)
    const rows = (): [number, number][] => {
      const file = openSqlite(join(server.dataDir, 'homeport.sqlite'), { readOnly: true })
      const counts =
        'SELECT tier_ms, count(*) FROM usage_buckets WHERE database_id = ? GROUP BY tier_ms ORDER BY tier_ms'
      const found = file
        .prepare(counts)
        .all(record.database_id)
        .map((row) => Object.values(row as object))
      file.close()
      return found as [number, number][]
    }
    const most = new Map([
      [60_000, 2],
      [12 * 60_000, 8 * 8],
      [HOUR_MS, 32 * 8],
    ])
    const isBounded = (): boolean =>
      rows().length === 3 && rows().every(([tier, count]) => count <= (most.get(tier) ?? 0))
    await waitFor(isBounded, { what: 'the series to be bounded', deadlineMs: 90_000, everyMs: 50 })
    await work.stop()
    clock.advance(40 * DAY_MS)
    const { throughput, command_counts } = await statsOf(record, '30d')
    const counted = sumOf(command_counts[0]?.data_points)
    expect([counted, throughput.filter(({ y }) => y > 0).length]).toEqual([239, 239])
  })
})
