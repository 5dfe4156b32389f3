import { expect, it } from 'vitest'
import { listSearchAt, orderOf, queryOf } from './list-search.js'

const NOW_MS = 100 * 86_400_000

it('filters and order are read from a URL, and unknown parameters are ignored', () => {
  const search = listSearchAt({ search: 7, state: 'passive', region: 'mars', size: '1mb', sort: '-size', plan: 3 })
  expect(search).toEqual({ search: '7', state: 'passive', size: '1mb', sort: '-size' })
  expect(listSearchAt({ sort: '-colour' })).toEqual({})
})

it('the search becomes a query; without an order, the oldest database is the first', () => {
  expect(queryOf({}, NOW_MS)).toEqual({})
  expect(orderOf({})).toEqual({ by: 'created', direction: 'asc' })
  expect(queryOf({ sort: '-size', plan: 'paid', use: 'none', size: 'some', created: 'week' }, NOW_MS)).toEqual({
    sort: 'size',
    direction: 'desc',
    type: 'paid',
    max_requests: 0,
    min_storage_bytes: 1,
    created_after: 93 * 86_400,
  })
  expect(queryOf({ created: 'older' }, NOW_MS)).toEqual({ created_before: 70 * 86_400 })
})
