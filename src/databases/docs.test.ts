import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { DatabaseRecordSchema } from '../contract/databases/databases.js'
import { DEFAULT_PLANS, NO_LIMIT, NS_PER_MS, PLAN_NAMES, PlanSchema } from '../contract/databases/plans.js'

const page = readFileSync(new URL('../../docs/databases.md', import.meta.url), 'utf8')
const text = page.replaceAll(/\s+/g, ' ')
const MB = 2 ** 20
const GB = 1024 * MB

function sizeText(bytes: number): string {
  const [unit, name] = bytes % (1024 * GB) === 0 ? [1024 * GB, 'TB'] : bytes % GB === 0 ? [GB, 'GB'] : [MB, 'MB']
  return `${bytes / unit} ${name}`
}
const count = (amount: number): string => amount.toLocaleString('en-US')

it.each(PLAN_NAMES)('the documentation has the limits of plan %s', (name) => {
  const plan = DEFAULT_PLANS[name]
  const type = name === 'free' || name === 'payg' ? name : 'paid'
  const sizes = [plan.db_disk_threshold, plan.db_memory_threshold].map(sizeText)
  const requests = [plan.db_max_request_size, plan.db_max_entry_size].map(sizeText)
  const cells = [`\`${name}\``, type, plan.db_resource_size, ...sizes, count(plan.db_max_clients), ...requests]
  expect(page).toContain(`| ${[...cells, count(plan.db_max_commands_per_second)].join(' | ')} |`)
})

it('the documentation has the limits that are not in the table', () => {
  const { free, payg, ...fixed } = DEFAULT_PLANS
  expect(text).toContain(`Plan \`free\` allows ${count(free.db_request_limit)} requests a month, the others any number`)
  expect([payg, ...Object.values(fixed)].map((plan) => plan.db_request_limit)).toEqual(Array(8).fill(NO_LIMIT))
  for (const plan of Object.values(DEFAULT_PLANS)) {
    const ms = (ns: number): number => ns / NS_PER_MS
    expect(text).toContain(`an idle connection is closed after ${ms(plan.db_conn_idle_timeout) / 3_600_000} hours`)
    expect(text).toContain(`one script may run for ${ms(plan.db_lua_timeout)} ms`)
    expect(text).toContain(`all scripts of a minute for ${ms(plan.db_lua_credits_per_min) / 1_000} s together`)
    expect(text).toContain(`for \`db_store_max_idle\` (${ms(plan.db_store_max_idle) / 60_000} minutes`)
  }
  const sizes = Object.values(fixed).map((plan) => sizeText(plan.max_bandwidth_per_month))
  const all = `${sizes.slice(0, -1).join(', ')} and ${sizes.at(-1)} on the fixed plans, any number on \`payg\``
  expect(text).toContain(`Bytes in and out a month: ${sizeText(free.max_bandwidth_per_month)} on \`free\`, ${all}`)
  expect(payg.max_bandwidth_per_month).toBe(NO_LIMIT)
})

it('the documentation says which fields a row of your own plans has', () => {
  const limits = Object.keys(PlanSchema.properties)
  const others = Object.keys(DatabaseRecordSchema.properties).filter(
    (name) => /^db_/.test(name) && !limits.includes(name),
  )
  const [, without = '', further = ''] = /begin with `db_` except ([^;]+); and ([^.]+)\./.exec(text) ?? []
  const names = (part: string): string[] => [...part.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
  expect(names(without).toSorted()).toEqual(others.toSorted())
  expect(names(further).toSorted()).toEqual(limits.filter((name) => !name.startsWith('db_')).toSorted())
})
