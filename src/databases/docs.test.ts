import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { DEFAULT_PLANS, PLAN_NAMES } from '../contract/databases/plans.js'

const page = readFileSync(new URL('../../docs/databases.md', import.meta.url), 'utf8')
const MB = 2 ** 20

const sizeText = (bytes: number): string =>
  bytes % (1024 * MB) === 0 ? `${bytes / (1024 * MB)} GB` : `${bytes / MB} MB`

it.each(PLAN_NAMES)('the documentation has the limits of plan %s', (name) => {
  const plan = DEFAULT_PLANS[name]
  const type = name === 'free' || name === 'payg' ? name : 'paid'
  const sizes = [plan.db_disk_threshold, plan.db_memory_threshold].map(sizeText)
  const requests = [plan.db_max_request_size, plan.db_max_entry_size].map(sizeText)
  const count = (amount: number): string => amount.toLocaleString('en-US')
  const cells = [`\`${name}\``, type, plan.db_resource_size, ...sizes, count(plan.db_max_clients), ...requests]
  expect(page).toContain(`| ${[...cells, count(plan.db_max_commands_per_second)].join(' | ')} |`)
})
