import { expect, it } from 'vitest'
import { deadRunSearchOf, runQueryOf, runSearchOf } from './search.js'
import { sentence } from './words.js'

it('a reason is a sentence with local times', () => {
  const text = sentence('sleeping until 2026-01-02T03:04:05.678Z')
  expect(text).toMatch(/^Sleeping until Jan \d, 2026/)
  expect(text).not.toContain('T03')
})

it('a URL keeps its known parameters, and the query has no others', () => {
  const search = runSearchOf({ state: 'RUN_FAILED', label: 42, from: '5', to: 'later', what: 'else', trigger: true })
  expect(search).toEqual({ state: 'RUN_FAILED', label: '42', from: 5, trigger: true })
  expect(runQueryOf(search)).toEqual({ state: ['RUN_FAILED'], label: ['42'], fromDate: 5 })
  expect(runSearchOf({ state: 'ASLEEP' })).toEqual({})
  expect(deadRunSearchOf({ status: 0, id: 'wfr_' })).toEqual({ status: 0, id: 'wfr_' })
})
