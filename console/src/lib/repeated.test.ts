import { expect, it } from 'vitest'
import { requestNames } from './repeated.js'

it('a repeated request keeps its id until it is answered, and a changed request has another id', () => {
  const names = requestNames('wfr_')
  const name = names.of({ fromStep: 2 })
  expect(name).toMatch(/^wfr_\w{10,}$/)
  expect(names.of({ fromStep: 2 })).toBe(name)
  expect(names.of({ fromStep: 2, payload: 'x' })).not.toBe(name)
  const other = names.of({ fromStep: 2 })
  names.answered()
  expect(names.of({ fromStep: 2 })).not.toBe(other)
})
