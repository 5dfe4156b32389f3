import { expect, it } from 'vitest'
import { requestNames } from './repeated.js'

it('a request that is repeated keeps its name until it was answered, and another one has another', () => {
  const names = requestNames('wfr_')
  const name = names.of({ fromStep: 2 })
  expect(name).toMatch(/^wfr_\w{10,}$/)
  expect(names.of({ fromStep: 2 })).toBe(name)
  expect(names.of({ fromStep: 2, payload: 'x' })).not.toBe(name)
  const other = names.of({ fromStep: 2 })
  names.answered()
  expect(names.of({ fromStep: 2 })).not.toBe(other)
})
