import { expect, it, vi } from 'vitest'
import { NO_LIMIT } from '../../../src/contract/databases/plans.js'
import { ago, bytes, capped, counted, dayOf, dollars, duration, durationNs, limit, percent, short } from './format.js'

it.each([
  [bytes(0), '0 B'],
  [bytes(1023), '1023 B'],
  [bytes(1536), '1.5 KB'],
  [bytes(100 * 2 ** 30), '100 GB'],
  [short(9999), '9,999'],
  [short(12_345), '12.3k'],
  [short(3_000_000), '3m'],
  [capped(10_000, 10_000), '10,000+'],
  [capped(9_999, 10_000), '9,999'],
  [limit(NO_LIMIT), 'no limit'],
  [limit(500_000), '500,000'],
  [dollars(0), '$0'],
  [dollars(20), '$20'],
  [dollars(1.5), '$1.50'],
  [dollars(0.00068), '$0.00068'],
  [dollars(0.000004), '<$0.0001'],
  [percent(0.305), '30.5 %'],
  [duration(40), '40ms'],
  [duration(1_250), '1.25s'],
  [duration(61_000), '1m 1s'],
  [duration(3_600_000), '1h'],
  [duration(90_000_000), '1d 1h'],
  [durationNs(250_000_000), '250ms'],
  [counted(1, 'key'), '1 key'],
  [counted(2_000, 'entry', 'entries'), '2,000 entries'],
  [ago(1_000, 1_500), 'just now'],
  [ago(0, 180_000), '3m ago'],
  [ago(7_200_000, 0), 'in 2h'],
])('%s is %s', (text, expected) => {
  expect(text).toBe(expected)
})

it('the console shows a UTC day as such in every time zone', () => {
  vi.stubEnv('TZ', 'America/New_York')
  try {
    expect(dayOf(new Date('2026-08-31T00:00:00Z'), 'UTC')).toBe('Aug 31')
    expect(dayOf(new Date('2026-08-31T00:00:00Z'))).toBe('Aug 30')
  } finally {
    vi.unstubAllEnvs()
  }
})
