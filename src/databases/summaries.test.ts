import { describe, expect, it } from 'vitest'
import type { SummariesQuery } from '../contract/console/console.js'
import { DEFAULT_PLANS } from '../contract/databases/plans.js'
import type { DatabaseRow } from './lifecycle.js'
import { type KnownDatabase, summariesOf, tallyOf } from './summaries.js'
import { NOBODY_SUSPENDED } from './suspended.js'
import { servedRow } from './testing/rows.js'

const rowOf = (n: number, some: Partial<DatabaseRow> = {}): DatabaseRow =>
  servedRow({
    database_id: `db-${n}`,
    name: `Shop ${n}`,
    primary_region: 'eu-west-1',
    read_regions: '["us-west-1"]',
    created_at: n * 1000,
    ...some,
  })

const settings = {
  plans: DEFAULT_PLANS,
  isAwake: (id: string) => id === 'db-1',
  isBeingCreated: () => true,
  nowMs: 5,
  suspended: NOBODY_SUSPENDED,
}
const known: KnownDatabase[] = [3, 1, 2].map((n) => ({ row: rowOf(n), monthRequests: () => n, usedBytes: 10 * n }))

it('counts active, sleeping, suspended and changing databases', () => {
  const more = [{ row: rowOf(4, { state: 'suspended' }) }, { row: rowOf(5, { modifying_state: 'deleting' }) }]
  expect(tallyOf([...known, ...more], settings)).toEqual({ active: 1, passive: 3, suspended: 1, modifying: 1 })
})

it('a summary has the fields of a list, with usage', () => {
  const { databases } = summariesOf(known, { search: 'shop 1' }, settings)
  expect(databases).toEqual([
    {
      database_id: 'db-1',
      database_name: 'Shop 1',
      state: 'active',
      modifying_state: '',
      type: 'payg',
      db_disk_threshold: DEFAULT_PLANS.payg.db_disk_threshold,
      primary_region: 'eu-west-1',
      read_regions: ['us-west-1'],
      creation_time: 1,
      requests: 1,
      storage_bytes: 10,
    },
  ])
})

it('pages are ordered by age, also when databases are created or deleted between them', () => {
  const first = summariesOf(known, { count: 2 }, settings)
  expect([first.databases.map(({ database_id }) => database_id), first.matched]).toEqual([['db-1', 'db-2'], 3])
  const without2 = [...known.filter(({ row }) => row.database_id !== 'db-2'), { row: rowOf(0) }]
  const second = summariesOf(without2, { count: 2, cursor: first.cursor ?? '' }, settings)
  expect(second.databases.map(({ database_id }) => database_id)).toEqual(['db-3'])
  expect(second.cursor).toBeUndefined()
})

it('databases created in the same millisecond are ordered by id', () => {
  const twins = ['b', 'a', 'c'].map((id) => ({ row: rowOf(1, { database_id: id }) }))
  const ids: string[] = []
  for (let cursor: string | undefined = '0/-'; cursor !== undefined; ) {
    const page = summariesOf(twins, { count: 1, cursor }, settings)
    ids.push(...page.databases.map(({ database_id }) => database_id))
    cursor = page.cursor
  }
  expect(ids).toEqual(['a', 'b', 'c'])
})

it.each([
  ['SHOP', 3],
  [' 2 ', 1],
  ['db-3', 1],
  ['db', 0],
])('the search "%s" matches parts of names and whole ids', (search, matched) => {
  expect(summariesOf(known, { search }, settings).matched).toBe(matched)
})

describe('a list', () => {
  const shops: KnownDatabase[] = [
    { row: rowOf(1, { name: 'Zoo', primary_region: 'us-east-1' }), monthRequests: () => 7, usedBytes: 100 },
    { row: rowOf(2, { name: 'été', plan: 'free' }), monthRequests: () => 0, usedBytes: 0 },
    { row: rowOf(3, { name: 'alpha', state: 'suspended' }), monthRequests: () => 5, usedBytes: 100 },
  ]
  const idsOf = (query: SummariesQuery): string => {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = summariesOf(shops, { ...query, count: 1, ...(cursor !== undefined && { cursor }) }, settings)
      ids.push(...page.databases.map(({ database_id }) => database_id.slice(3)))
      cursor = page.cursor
    } while (cursor !== undefined)
    return ids.join('')
  }

  it.each([
    ['created', '123', '321'],
    ['name', '312', '213'],
    ['state', '123', '321'],
    ['region', '231', '132'],
    ['plan', '213', '312'],
    ['size', '213', '312'],
    ['requests', '231', '132'],
  ] as const)('is sorted by %s in both directions, page by page', (sort, up, down) => {
    expect(idsOf({ sort })).toBe(up)
    expect(idsOf({ sort, direction: 'desc' })).toBe(down)
  })

  it.each([
    [{ state: 'suspended' }, '3'],
    [{ type: 'free' }, '2'],
    [{ region: 'us-east-1' }, '1'],
    [{ region: 'us-west-1' }, '123'],
    [{ min_storage_bytes: 1 }, '13'],
    [{ max_storage_bytes: 0 }, '2'],
    [{ min_requests: 6 }, '1'],
    [{ max_requests: 5, search: 'a' }, '3'],
    [{ created_after: 2 }, '23'],
    [{ created_before: 2 }, '1'],
  ] as const)('is filtered by %j', (query, ids) => {
    expect(idsOf(query)).toBe(ids)
  })
})
