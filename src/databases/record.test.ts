import { Compile } from 'typebox/compile'
import { expect, it } from 'vitest'
import { DatabaseRecordSchema } from '../contract/databases/databases.js'
import { DEFAULT_PLANS, PLAN_NAMES } from '../contract/databases/plans.js'
import type { DatabaseRow } from './lifecycle.js'
import { type RecordSettings, renderRecord } from './record.js'
import { NOBODY_SUSPENDED } from './suspended.js'
import { servedRow } from './testing/rows.js'

const row = servedRow({
  database_id: 'd',
  primary_region: 'eu-west-1',
  read_regions: '["us-west-1","us-east-1"]',
  eviction: 1,
  tls: 1,
  created_at: 1_500,
})

const settings: RecordSettings = {
  plans: DEFAULT_PLANS,
  publicRedisHost: 'localhost',
  publicRestUrl: 'http://localhost:8701',
  redisDomainPort: 6380,
  isAwake: () => false,
  suspended: NOBODY_SUSPENDED,
}

const checker = Compile(DatabaseRecordSchema)
const known = Object.keys(DatabaseRecordSchema.properties)

it.each(PLAN_NAMES)('a record has all fields of its schema and no others, on plan %s', (plan) => {
  const record = renderRecord({ ...row, plan }, 'a@b.c', settings, 'all')
  expect([...checker.Errors(record)]).toEqual([])
  const always = known.filter((name) => name !== 'data_problem' && name !== 'set_aside' && name !== 'suspended_by')
  expect(Object.keys(record).sort()).toEqual(always.sort())
})

it('a record shows a data problem, and none when the column is unreadable', () => {
  const data_problem = JSON.stringify({ kind: 'cut', what: 'half of it', sinceMs: 5_000, lastWholeAtMs: 4_000 })
  const record = renderRecord({ ...row, data_problem }, 'a@b.c', settings, 'all')
  expect([...checker.Errors(record)]).toEqual([])
  expect(record.data_problem).toEqual({ kind: 'cut', text: 'half of it', since: 5, last_whole: 4 })
  expect(renderRecord({ ...row, data_problem: '{' }, 'a@b.c', settings, 'all')).not.toHaveProperty('data_problem')
})

it('a record matches its schema with every setting switched on', () => {
  const switched: Partial<DatabaseRow>[] = [
    { eviction: 0, tls: 0, persistence: 'snapshot', state: 'suspended', modifying_state: 'restoring' },
    { auto_upgrade: 1, production_pack: 1, last_upgrade_at: 5_000, next_daily_backup_at: 9_000 },
    { allowed_ips: '["10.0.0.0/8"]', client_authority: 'pem', read_regions: '[]' },
  ]
  for (const some of switched) {
    expect([...checker.Errors(renderRecord({ ...row, ...some }, 'a@b.c', settings, 'all'))]).toEqual([])
  }
})

it.each([
  ['none', []],
  ['read-only', ['read_only_rest_token']],
  ['all', ['password', 'rest_token', 'read_only_rest_token']],
] as const)('shows these credentials: %s', (shown, fields) => {
  const names = Object.keys(renderRecord(row, 'a@b.c', settings, shown))
  expect(names.filter((name) => /password|token/.test(name))).toEqual(fields)
})

it.each([
  ['primary region', { primary_region: 'atlantis-1' }],
  ['read region', { read_regions: '["atlantis-1"]' }],
  ['plan', { plan: 'atlantis' }],
])('the record of a database with an unknown %s cannot be made', (what, some) => {
  expect(() => renderRecord({ ...row, ...some }, 'a@b.c', settings, 'all')).toThrow(`unknown ${what}`)
})
