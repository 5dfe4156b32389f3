import { describe, expect, it } from 'vitest'
import { DEFAULT_PLANS, PLAN_NAMES, type PlanName } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { DatabaseRow } from '../life.js'
import { AutoUpgrade, nextPlan } from './auto-upgrade.js'
import { UsageLedger } from './ledger.js'

const NOW = Date.UTC(2026, 5, 15)
const GIB = 2 ** 30

const rowOf = (some: Partial<DatabaseRow>): DatabaseRow =>
  ({
    ...{ database_id: 'db', account_id: 'a', plan: 'fixed_1gb', budget: 0, state: 'active', modifying_state: '' },
    ...{ read_regions: '[]', created_at: NOW, eviction: 0, auto_upgrade: 1, ...some },
  }) as DatabaseRow

const ledgerOf = (some: Partial<DatabaseRow>, usedBytes: number): UsageLedger => {
  const ledger = new UsageLedger({ row: rowOf(some), plans: DEFAULT_PLANS, nowMs: NOW, onBudgetSpent: () => undefined })
  ledger.addEngineSample({ keys: 1, usedBytes, diskBytes: 1, monitors: 0, lookups: [] }, NOW)
  return ledger
}

/** What an auto upgrade changes and complains of; every change fails with `failure`, if there is one. */
function upgrades(failure?: Error) {
  const [moves, complaints]: [PlanName[], string[]] = [[], []]
  const upgrade = new AutoUpgrade({
    plans: DEFAULT_PLANS,
    logger: { info: () => undefined, warn: (_fields: object, text?: string) => void complaints.push(text ?? '') },
    changePlan: async (caller, databaseId, plan) => {
      expect([caller.accountId, caller.source, databaseId]).toEqual(['a', 'SYSTEM', 'db'])
      moves.push(plan)
      if (failure) throw failure
    },
  })
  return { upgrade, moves, complaints }
}

describe('auto upgrade', () => {
  it('leads from each fixed plan to the next, and nowhere else', () => {
    const next = PLAN_NAMES.map((plan) => nextPlan(rowOf({ plan }), DEFAULT_PLANS))
    expect(next).toEqual([undefined, undefined, ...PLAN_NAMES.slice(3), undefined])
  })

  it('skips a plan that holds no more, as an operator may have made one', () => {
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
      '90 % of the bandwidth and eviction, which makes room but sends nothing less',
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

  it('comes for a value that does not fit although there is room, once for each refusal', async () => {
    const { upgrade, moves } = upgrades()
    const ledger = ledgerOf({}, 0.8 * GIB)
    ledger.meter.refusedForSpace++
    upgrade.consider(ledger)
    upgrade.consider(ledger)
    await upgrade.stop()
    upgrade.consider(ledger)
    expect(moves).toEqual(['fixed_5gb'])
  })

  it('is not caused by what was refused on the plan before', async () => {
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

  it('is tried again at the next look when it fails, and says so unless another change is under way', async () => {
    for (const [failure, complaints] of [
      [new Error('no'), 2],
      [new HomeportError('database_busy', { modifyingState: 'restoring' }), 0],
    ] as const) {
      const tried = upgrades(failure)
      const ledger = ledgerOf({}, GIB)
      for (let look = 0; look < 2; look++) {
        tried.upgrade.consider(ledger)
        await tried.upgrade.stop()
      }
      expect([tried.moves.length, tried.complaints.length]).toEqual([2, complaints])
    }
  })
})
