import { expect, it } from 'vitest'
import { patternOfPrefix, type ScanPage, scannedText } from './keys.js'

const page = (found: number, looked: number, cursor: string | undefined): ScanPage => ({
  keys: Array.from({ length: found }, (_, i) => ({ shown: `k${i}`, name: `k${i}`, type: 'string' })),
  looked,
  cursor,
})

it('says how much was looked at, and never more than there is', () => {
  expect(scannedText([page(37, 5_000, '17')], 120_000)).toBe('About 5,000 of 120,000 keys looked at, 37 found so far')
  expect(scannedText([page(1, 1_000, '5')], 300)).toBe('About 300 of 300 keys looked at, 1 found so far')
  expect(scannedText([page(1, 1_000, '5'), page(2, 1_000, undefined)], 1_500)).toBe('All 1,500 keys looked at, 3 found')
})

it('a prefix means itself, whatever characters it has', () => {
  expect(patternOfPrefix('user:')).toBe('user:*')
  expect(patternOfPrefix('a*[b]?\\')).toBe('a\\*\\[b\\]\\?\\\\*')
})
