import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { DEFAULT_PLANS, NO_LIMIT, PLAN_NAMES } from '../contract/databases/plans.js'
import { loadPlans } from './plan-file.js'

function fileOf(content: unknown): string {
  const path = join(tempDir(), 'plans.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

it('the built-in table has the limits of every plan', () => {
  const MB = 2 ** 20
  const GB = 2 ** 30
  const rows = PLAN_NAMES.map((name) => {
    const plan = DEFAULT_PLANS[name]
    const sizes = [plan.db_max_request_size / MB, plan.db_max_entry_size / MB]
    const data = [plan.db_disk_threshold / MB, plan.db_memory_threshold / MB]
    return [name, plan.db_resource_size, plan.db_max_clients, ...sizes, ...data, plan.db_max_commands_per_second]
  })
  expect(rows).toEqual([
    ['free', 'S', 1000, 10, 100, 256, 64, 10000],
    ['payg', 'L', 10000, 10, 100, 100 * 1024, 3 * 1024, 10000],
    ['fixed_250mb', 'S', 1000, 10, 100, 250, 250, 10000],
    ['fixed_1gb', 'M', 10000, 10, 200, 1024, 1024, 10000],
    ['fixed_5gb', 'L', 10000, 20, 300, 5 * 1024, 5 * 1024, 10000],
    ['fixed_10gb', 'XL', 10000, 30, 400, 10 * 1024, 10 * 1024, 10000],
    ['fixed_50gb', 'XXL', 10000, 50, 500, 50 * 1024, 50 * 1024, 10000],
    ['fixed_100gb', '3XL', 10000, 75, 1024, 100 * 1024, 100 * 1024, 16000],
    ['fixed_500gb', '3XL', 10000, 100, 5 * 1024, 500 * 1024, 500 * 1024, 16000],
  ])
  expect(DEFAULT_PLANS.free.db_request_limit).toBe(500_000)
  expect(DEFAULT_PLANS.payg.db_request_limit).toBe(NO_LIMIT)
  expect(DEFAULT_PLANS.payg.db_disk_threshold).toBe(100 * GB)
})

it('the plan table uses the built-in table without a file', async () => {
  expect(await loadPlans(undefined)).toBe(DEFAULT_PLANS)
})

it('the plan table replaces built-in rows by those of the file', async () => {
  const row = { ...DEFAULT_PLANS.free, db_max_clients: 3 }
  const plans = await loadPlans(fileOf({ free: row }))
  expect(plans.free.db_max_clients).toBe(3)
  expect(plans.payg).toEqual(DEFAULT_PLANS.payg)
})

it.each([
  ['a file that is not there', '/nowhere/plans.json', 'plansFile /nowhere/plans.json cannot be read'],
  ['broken JSON', fileOf('{'), 'is not valid JSON'],
  ['a list', fileOf([]), 'expected a JSON object'],
  ['an unknown plan', fileOf({ gold: DEFAULT_PLANS.free }), '"gold" is not a plan, expected one of free, payg'],
  ['a row with a wrong limit', fileOf({ free: { ...DEFAULT_PLANS.free, db_max_clients: 0 } }), 'free/db_max_clients'],
  ['a row that lacks a limit', fileOf({ free: {} }), 'free must have required properties'],
  ['a row with a misspelt limit', fileOf({ free: { ...DEFAULT_PLANS.free, db_max_client: 5 } }), 'free must not have'],
])('the plan table refuses %s', async (_what, path, text) => {
  await expect(loadPlans(path)).rejects.toThrow(text)
})
