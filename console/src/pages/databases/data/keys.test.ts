import { expect, it } from 'vitest'
import { patternOfPrefix, scannedText } from './keys.js'

it('the page says how many keys were searched, at most all of them', () => {
  expect(scannedText('paused', 37, 5_000, 120_000)).toBe('Found 37 in about 5,000 of 120,000 keys')
  expect(scannedText('searching', 1, 1_000, 300)).toBe('Found 1 in about 300 of 300 keys')
  expect(scannedText('done', 3, 2_000, 1_500)).toBe('Found 3 in all 1,500 keys')
  expect(scannedText('full', 1_000_000, 2_000_000, 5_000_000)).toMatch(/^Stopped at 1,000,000 keys/)
})

it('a prefix matches literally, special characters included', () => {
  expect(patternOfPrefix('user:')).toBe('user:*')
  expect(patternOfPrefix('a*[b]?\\')).toBe('a\\*\\[b\\]\\?\\\\*')
})
