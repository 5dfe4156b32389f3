import { describe, expect, it } from 'vitest'
import { DEFAULT_PLANS, PLAN_NAMES, type PlanName } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { recordedLog } from '../../telemetry/testing/recorded-log.js'
import type { DatabaseRow } from '../lifecycle.js'
import { NOBODY_SUSPENDED } from '../suspended.js'
import { AutoUpgrade, nextPlan } from './auto-upgrade.js'
import { UsageLedger } from './ledger.js'

const NOW = Date.UTC(2026, 5, 15)
const GIB = 2 ** 30

const rowOf = (some: Partial<DatabaseRow>): DatabaseRow =>
  ({
    database_id: 'db',
    account_id: 'a',
    plan: 'fixed_1gb',
    budget: 0,
    state: 'active',
    modifying_state: '',
    read_regions: '[]',
    created_at: NOW,
    eviction: 0,
    auto_upgrade: 1,
    ...some,
  }) as DatabaseRow

const ledgerOf = (some: Partial<DatabaseRow>, usedBytes: number): UsageLedger => {
  const ledger = new UsageLedger({
    row: rowOf(some),
    plans: DEFAULT_PLANS,
    nowMs: NOW,
    suspended: NOBODY_SUSPENDED,
    onBudgetSpent: () => undefined,
  })
  ledger.addEngineSample({ keys: 1, usedBytes, diskBytes: 1, monitors: 0, lookups: [] }, NOW)
  return ledger
}

/** An auto upgrade with its plan changes and warnings; every change fails with `failure`, if given. */
function upgrades(failure?: Error) {
  const moves: PlanName[] = []
  const { logger, texts: warnings } = recordedLog(['warn'])
  const upgrade = new AutoUpgrade({
    plans: DEFAULT_PLANS,
    logger,
    changePlan: async (caller, databaseId, plan) => {
      expect([caller.accountId, caller.source, databaseId]).toEqual(['a', 'SYSTEM', 'db'])
      moves.push(plan)
      if (failure) throw failure
    },
  })
  return { upgrade, moves, warnings }
}

describe('auto upgrade', () => {
  it('moves from each fixed plan to the next, and from no other', () => {
    const next = PLAN_NAMES.map((plan) => nextPlan(rowOf({ plan }), DEFAULT_PLANS))
    expect(next).toEqual([undefined, undefined, ...PLAN_NAMES.slice(3), undefined])
  })

  it('skips a plan that is no larger, as an operator may define', () => {
    const plans = { ...DEFAULT_PLANS, fixed_5gb: DEFAULT_PLANS.fixed_1gb }
    expect(nextPlan(rowOf({ plan: 'fixed_1gb' }), plans)).toBe('fixed_10gb')
  })

  it.each([
    ['less than 90 % used', {}, 0.89 * GIB, []],
    ['90 % used', {}, 0.91 * GIB, ['fixed_5gb']],
    ['that is off', { auto_upgrade: 0 } as const, GIB, []],
    ['with eviction', { eviction: 1 } as const, GIB, []],
    ['on the largest plan', { plan: 'fixed_500gb' }, 500 * GIB, []],
    ['on a plan that is not fixed', { plan: 'payg' }, 100 * GIB, []],
  ])('with %s', async (_case, some, usedBytes, expected) => {
    const { upgrade, moves } = upgrades()
    upgrade.consider(ledgerOf(some, usedBytes))
    await upgrade.stop()
    expect(moves).toEqual(expected)
  })

  it.each([
    ['less than 90 % of the bandwidth', {}, 89, []],
    ['90 % of the bandwidth', {}, 91, ['fixed_5gb']],
    [
      '90 % of the bandwidth and eviction, which does not reduce bandwidth',
      { eviction: 1 } as const,
      91,
      ['fixed_5gb'],
    ],
    ['90 % of the bandwidth, and auto upgrade off', { auto_upgrade: 0 } as const, 91, []],
  ])('with %s', async (_case, some, sentGib, expected) => {
    const { upgrade, moves } = upgrades()
    const ledger = ledgerOf(some, 0)
    ledger.meter.bytesOut += sentGib * GIB
    upgrade.consider(ledger)
    await upgrade.stop()
    expect(moves).toEqual(expected)
  })

  it('moves for a value that does not fit below the threshold, once for each refusal', async () => {
    const { upgrade, moves } = upgrades()
    const ledger = ledgerOf({}, 0.8 * GIB)
    ledger.meter.refusedForSpace++
    upgrade.consider(ledger)
    upgrade.consider(ledger)
    await upgrade.stop()
    upgrade.consider(ledger)
    expect(moves).toEqual(['fixed_5gb'])
  })

  it('ignores refusals on the previous plan', async () => {
    const { upgrade, moves } = upgrades()
    const ledger = ledgerOf({}, 0.95 * GIB)
    ledger.meter.refusedForSpace++
    upgrade.consider(ledger)
    ledger.meter.refusedForSpace++
    await upgrade.stop()
    ledger.update(rowOf({ plan: 'fixed_5gb' }), NOW)
    upgrade.consider(ledger)
    await upgrade.stop()
    expect(moves).toEqual(['fixed_5gb'])
  })

  it('retries a failed upgrade, with a warning unless the database is busy', async () => {
    for (const [failure, warnings] of [
      [new Error('no'), 2],
      [new HomeportError('database_busy', { modifyingState: 'restoring' }), 0],
    ] as const) {
      const tried = upgrades(failure)
      const ledger = ledgerOf({}, GIB)
      for (let flush = 0; flush < 2; flush++) {
        tried.upgrade.consider(ledger)
        await tried.upgrade.stop()
      }
      expect([tried.moves.length, tried.warnings.length]).toEqual([2, warnings])
    }
  })
})
