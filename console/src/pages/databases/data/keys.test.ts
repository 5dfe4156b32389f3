import { expect, it } from 'vitest'
import { patternOfPrefix, type ScanPage, scannedText } from './keys.js'

const page = (found: number, searched: number, cursor: string | undefined): ScanPage => ({
  keys: Array.from({ length: found }, (_, i) => ({ shown: `k${i}`, name: `k${i}`, type: 'string' })),
  searched,
  cursor,
})

it('shows how many keys were searched, at most all of them', () => {
  expect(scannedText([page(37, 5_000, '17')], 120_000)).toBe('Searched about 5,000 of 120,000 keys, found 37 so far')
  expect(scannedText([page(1, 1_000, '5')], 300)).toBe('Searched about 300 of 300 keys, found 1 so far')
  expect(scannedText([page(1, 1_000, '5'), page(2, 1_000, undefined)], 1_500)).toBe('Searched all 1,500 keys, found 3')
})

it('a prefix matches literally, special characters included', () => {
  expect(patternOfPrefix('user:')).toBe('user:*')
  expect(patternOfPrefix('a*[b]?\\')).toBe('a\\*\\[b\\]\\?\\\\*')
})
