import { expect, it } from 'vitest'
import { isMatch, targetOf } from './palette-items.js'

it.each([
  ['wfr_4d5', '/runs/$id', 'Open the run wfr_4d5'],
  ['  msg_26hZ ', '/messages/$id', 'Open the message msg_26hZ'],
  ['bulk_1', '/bulk-actions/$id', 'Open the bulk action bulk_1'],
])('the identifier %s leads to its page', (text, to, label) => {
  expect(targetOf(text)).toMatchObject({ to, label, params: { id: text.trim() } })
})

it.each(['', 'wfr_', 'my wfr_1', 'msg_a/../b', 'orders'])('%j is no identifier', (text) => {
  expect(targetOf(text)).toBeUndefined()
})

it('a search finds names that contain all of its words', () => {
  expect(isMatch('Dead letters', 'let DEAD')).toBe(true)
  expect(isMatch('Dead letters', '')).toBe(true)
  expect(isMatch('Dead letters', 'dead runs')).toBe(false)
})
