import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../contract/databases/commands.js'
import { DEFAULT_PLANS, type PlanTable } from '../../contract/databases/plans.js'
import { COMMAND_INDEX } from '../../telemetry/index.js'
import type { DatabaseRow } from '../lifecycle.js'
import { NOBODY_SUSPENDED } from '../suspended.js'
import { DAY_MS, holdingCosts, NANO, pricesOf } from './cost.js'
import { type Opening, UsageLedger } from './ledger.js'

const HOUR_MS = DAY_MS / 24
const GIB = 2 ** 30
/** 15 June, noon; June has 30 days. */
const NOON = Date.UTC(2026, 5, 15, 12)

/** 10 US dollars for one request. */
const plans: PlanTable = { ...DEFAULT_PLANS, payg: { ...DEFAULT_PLANS.payg, price_per_100k_commands: 1_000_000 } }

const rowOf = (some: Partial<DatabaseRow> = {}): DatabaseRow =>
  ({
    database_id: 'db',
    account_id: 'a',
    plan: 'payg',
    budget: 0,
    state: 'active',
    modifying_state: '',
    read_regions: '[]',
    created_at: NOON,
    eviction: 0,
    auto_upgrade: 0,
    ...some,
  }) as DatabaseRow

function ledgerOf(some: Partial<DatabaseRow> = {}, opening: Partial<Opening> = {}) {
  let notified = 0
  const onBudgetSpent = (): void => void notified++
  const ledger = new UsageLedger({
    row: rowOf(some),
    plans,
    nowMs: NOON,
    suspended: NOBODY_SUSPENDED,
    onBudgetSpent,
    ...opening,
  })
  return { ledger, notified: () => notified }
}

/** Counts as the gateway does. */
function send(ledger: UsageLedger, name: string, times = 1, requestsEach = 1): void {
  const index = COMMAND_INDEX.get(name) ?? 0
  ledger.meter.countCommand(index, times)
  ledger.meter.month.requests += times * requestsEach
  ledger.meter.lastActivityAtMs++
}

const engines = (usedBytes: number, hits = 0) => ({
  keys: 3,
  usedBytes,
  diskBytes: 7,
  monitors: 0,
  lookups: [{ generation: 1, hits, misses: 1 }],
})

describe('the cost of storage', () => {
  it('accrues evenly over the month, beyond the first gigabyte', () => {
    const from = Date.UTC(2026, 5, 1)
    const costOf = (plan: keyof PlanTable, bytes: number, days: number): number =>
      holdingCosts(pricesOf(plans[plan]), bytes, from, from + days * DAY_MS).reduce((sum, day) => sum + day.costNano, 0)
    expect(costOf('fixed_250mb', 0, 30) / NANO).toBeCloseTo(10)
    expect(costOf('fixed_250mb', 5 * GIB, 15) / NANO).toBeCloseTo(5)
    expect(costOf('payg', 3 * GIB, 30) / NANO).toBeCloseTo(0.5)
    expect(costOf('payg', GIB, 30)).toBe(0)
  })

  it('is split by day', () => {
    const holdings = holdingCosts(pricesOf(plans.payg), 2048, NOON, NOON + 2 * DAY_MS)
    expect(holdings.map(({ day }) => day - NOON)).toEqual([-DAY_MS / 2, DAY_MS / 2, 1.5 * DAY_MS])
    expect(holdings.map(({ kibSeconds }) => kibSeconds)).toEqual([86_400, 172_800, 86_400])
  })

  it('of a month with 28 and of one with 31 days is the monthly price', () => {
    for (const [month, days] of [
      [1, 28],
      [6, 31],
    ] as const) {
      const from = Date.UTC(2026, month, 1)
      const whole = holdingCosts(pricesOf(plans.fixed_1gb), 0, from, from + days * DAY_MS)
      expect(whole.reduce((sum, day) => sum + day.costNano, 0) / NANO).toBeCloseTo(20)
    }
  })
})

describe('a ledger', () => {
  it('collects differences by kind, by command and as billed', () => {
    const { ledger } = ledgerOf({ read_regions: '["us-west-1","eu-west-1"]' })
    expect(ledger.hasChanged).toBe(false)
    send(ledger, 'GET', 4)
    send(ledger, 'SET', 2, 3)
    send(ledger, 'EVAL', 1, 3)
    send(ledger, 'PING')
    Object.assign(ledger.meter, { bytesIn: 100, bytesOut: 50, connections: 2, connectionsTotal: 5 })
    ledger.meter.readLatency.record(100)
    ledger.collect(NOON)
    const counters = { requests: 14, reads: 4, writes: 2, scripts: 1, others: 1, bytesIn: 100, bytesOut: 50 }
    expect(ledger.pending.sample).toMatchObject({
      counters: { ...counters, hits: 0, misses: 0 },
      commands: { GET: 4, SET: 2, EVAL: 1, PING: 1 },
      connections: 5,
      readLatency: { count: 1, sumUs: 100 },
    })
    expect(ledger.meter.month.requests).toBe(14)
    expect(ledger.hasChanged).toBe(false)
    ledger.take()
    send(ledger, 'GET')
    ledger.collect(NOON + 1)
    expect(ledger.pending.sample).toMatchObject({ counters: { requests: 1, reads: 1 }, commands: { GET: 1 } })
    expect(ledger.pending.sample?.readLatency.count).toBe(0)
  })

  it('counts the differences of hits and misses of each engine process', () => {
    const { ledger } = ledgerOf()
    const hitsAfter = (sample: Parameters<UsageLedger['addEngineSample']>[0]): number | undefined => {
      send(ledger, 'GET')
      ledger.collect(NOON)
      ledger.addEngineSample(sample, NOON)
      return ledger.take().sample?.counters.hits
    }
    expect(hitsAfter(engines(1, 10))).toBe(10)
    expect(hitsAfter(engines(1, 14))).toBe(4)
    expect(hitsAfter({ ...engines(1), lookups: [{ generation: 2, hits: 3, misses: 0 }] })).toBe(3)
  })

  it('keeps hits and misses of an engine that answers after what was collected before has been stored', () => {
    const { ledger } = ledgerOf()
    send(ledger, 'GET')
    ledger.collect(NOON)
    ledger.beginSampling()
    ledger.take()
    ledger.addEngineSample(engines(1, 10), NOON)
    const late = { counters: { requests: 0, hits: 10, misses: 1 }, gauges: { keys: 3 } }
    expect(ledger.take().sample).toMatchObject(late)
    ledger.addEngineSample(engines(1, 10), NOON)
    expect(ledger.pending.isEmpty).toBe(true)
  })

  it('writes whole numbers without losing remainders', () => {
    const { ledger } = ledgerOf({ plan: 'fixed_250mb' })
    ledger.addEngineSample(engines(1000), NOON)
    let [nano, held] = [0, 0]
    for (let second = 1; second <= 3600; second++) {
      send(ledger, 'GET')
      ledger.collect(NOON + second * 1000)
      for (const day of ledger.take().days) {
        expect(Number.isSafeInteger(day.cost_nano) && Number.isSafeInteger(day.held_kib_s)).toBe(true)
        nano += day.cost_nano
        held += day.held_kib_s
      }
    }
    expect(Math.abs(nano - (10 * NANO) / 30 / 24)).toBeLessThan(2)
    expect(Math.abs(held - (1000 / 1024) * 3600)).toBeLessThan(2)
  })

  it('continues after a restart, at the prices that applied since', () => {
    const standing = {
      database_id: 'db',
      accounted_at: NOON - 10 * HOUR_MS,
      plan: 'fixed_250mb',
      looked_at: 1,
      keys: 5,
      used_bytes: 6,
      disk_bytes: 7,
    }
    const { ledger } = ledgerOf({}, { standing, month: { requests: 40, cost_nano: 2 * NANO } })
    expect(ledger.meter.month.requests).toBe(40)
    expect(ledger.gauges).toEqual({ keys: 5, usedBytes: 6, diskBytes: 7, monitors: 0, open: 0 })
    const { days, standing: written } = ledger.take()
    expect(days.reduce((sum, day) => sum + day.cost_nano, 0) / NANO).toBeCloseTo(10 / 30 / 2.4)
    expect(written).toMatchObject({ accounted_at: NOON, plan: 'payg' })
  })

  it('charges no time twice that a clock ahead has charged before a restart', () => {
    const fixed = { plan: 'fixed_250mb' } as const
    const { ledger: ahead } = ledgerOf(fixed)
    send(ahead, 'GET')
    ahead.collect(NOON + 10 * HOUR_MS)
    const { standing } = ahead.take()
    const { ledger } = ledgerOf(fixed, { standing })
    const costAt = (nowMs: number): number => {
      send(ledger, 'GET')
      ledger.collect(nowMs)
      return ledger.take().days.reduce((sum, day) => sum + day.cost_nano, 0) / NANO
    }
    expect(costAt(NOON + 10 * HOUR_MS)).toBe(0)
    expect(costAt(NOON + 20 * HOUR_MS)).toBeCloseTo(10 / 30 / 2.4)
  })

  it('knows every command of the table', () => {
    const { ledger } = ledgerOf()
    for (const { name } of COMMANDS) send(ledger, name)
    ledger.collect(NOON)
    const { reads = 0, writes = 0, scripts = 0, others = 0 } = ledger.pending.sample?.counters ?? {}
    expect(reads + writes + scripts + others).toBe(COMMANDS.length)
  })
})

describe('a budget', () => {
  const spend = (ledger: UsageLedger): number => {
    let sent = 0
    for (; ledger.admission.kind === 'open' && sent < 1000; sent++) send(ledger, 'GET')
    return sent
  }

  it('pays for exactly as many requests, whenever they are collected', () => {
    for (const collectEvery of [1, 3, 1000]) {
      const { ledger, notified } = ledgerOf({ budget: 100 })
      let sent = 0
      for (; ledger.admission.kind === 'open' && sent < 1000; sent++) {
        send(ledger, 'GET')
        if (sent % collectEvery === 0) {
          ledger.collect(NOON + sent)
          ledger.updateRequestLimit(NOON + sent)
        }
      }
      expect([sent, ledger.isBudgetSpent]).toEqual([10, true])
      expect(ledger.admission).toMatchObject({ kind: 'refused', error: { code: 'budget_exceeded' } })
      expect(notified()).toBe(1)
    }
  })

  it('keeps its remainder after a restart', () => {
    const { ledger } = ledgerOf({ budget: 100 }, { month: { requests: 7, cost_nano: 70 * NANO } })
    expect(spend(ledger)).toBe(3)
    const { ledger: spent } = ledgerOf({ budget: 100 }, { month: { requests: 10, cost_nano: 100 * NANO } })
    expect(spent.isBudgetSpent).toBe(true)
    // A sum of fractions may be a billionth below the budget: that pays for no more request.
    const { ledger: nearly } = ledgerOf({ budget: 100 }, { month: { requests: 10, cost_nano: 100 * NANO - 1 } })
    expect(nearly.isBudgetSpent).toBe(true)
  })

  it('suffices again when it is raised, in a new month, and on a plan that does not charge for usage', () => {
    const spentLedger = (): UsageLedger => {
      const { ledger } = ledgerOf({ budget: 100 })
      spend(ledger)
      ledger.collect(NOON)
      ledger.update(rowOf({ budget: 100, state: 'suspended' }), NOON)
      expect(ledger.isBudgetSpent).toBe(true)
      return ledger
    }
    const raised = spentLedger()
    raised.update(rowOf({ budget: 120, state: 'suspended' }), NOON)
    expect(raised.isBudgetSpent).toBe(false)
    raised.update(rowOf({ budget: 120 }), NOON)
    expect(spend(raised)).toBe(2)
    const turned = spentLedger()
    turned.updateRequestLimit(Date.UTC(2026, 6, 1) - 1)
    expect(turned.isBudgetSpent).toBe(true)
    turned.updateRequestLimit(Date.UTC(2026, 6, 1))
    expect([turned.isBudgetSpent, turned.meter.month.requests]).toEqual([false, 0])
    turned.updateRequestLimit(Date.UTC(2026, 6, 1) - 1)
    expect([turned.isBudgetSpent, turned.meter.month.requests]).toEqual([true, 10])
    const fixed = spentLedger()
    fixed.update(rowOf({ budget: 100, plan: 'fixed_250mb' }), NOON)
    expect([fixed.isBudgetSpent, spend(fixed)]).toEqual([false, 1000])
  })

  it('goes on in both months when the clock is set back for a while', () => {
    const [before, after] = [Date.UTC(2026, 6, 1) - 1, Date.UTC(2026, 6, 1) + 1]
    const { ledger } = ledgerOf({ budget: 100 })
    const leftAt = (nowMs: number): number => {
      ledger.updateRequestLimit(nowMs)
      send(ledger, 'GET')
      ledger.meter.bytesIn += 7
      ledger.collect(nowMs)
      ledger.updateRequestLimit(nowMs)
      return ledger.meter.month.requests * 1_000 + ledger.meter.monthBytes
    }
    expect([before, before, after, before, after].map(leftAt)).toEqual([1_007, 2_014, 1_007, 3_021, 2_014])
    expect([before, after].map((nowMs) => ledger.monthCostNano(nowMs) / NANO)).toEqual([30, 20])
  })

  it('is spent by storage too, which costs nothing while the database is suspended', () => {
    const { ledger } = ledgerOf({ budget: 1 }, { plans: DEFAULT_PLANS })
    ledger.addEngineSample(engines(401 * GIB), NOON)
    const dayCosts = (400 * 0.25) / 30
    expect(dayCosts).toBeGreaterThan(1)
    ledger.updateRequestLimit(NOON + (0.99 / dayCosts) * DAY_MS)
    expect(ledger.isBudgetSpent).toBe(false)
    const at = NOON + (1.001 / dayCosts) * DAY_MS
    ledger.updateRequestLimit(at)
    expect(ledger.isBudgetSpent).toBe(true)
    ledger.update(rowOf({ budget: 1, state: 'suspended' }), at)
    const days = ledger.pendingDays(at + 10 * DAY_MS)
    expect(days.reduce((sum, day) => sum + day.cost_nano, 0) / NANO).toBeCloseTo(1, 2)
  })

  it('of 0 means no limit', () => {
    expect(spend(ledgerOf({ budget: 0 }).ledger)).toBe(1000)
  })
})
