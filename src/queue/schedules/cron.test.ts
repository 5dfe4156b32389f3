import { describe, expect, it } from 'vitest'
import { parseCron } from './cron.js'

function next(cron: string, after: string): string | undefined {
  const times = parseCron(cron)
  if ('problem' in times) return `refused: ${times.problem}`
  const at = times.next(Date.parse(after))
  return at === undefined ? undefined : new Date(at).toISOString()
}

describe('a cron expression', () => {
  it.each([
    ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:01:00.000Z'],
    ['*/5 * * * *', '2026-01-01T00:04:59.999Z', '2026-01-01T00:05:00.000Z'],
    [' 0 9 * * 1-5 ', '2026-01-02T10:00:00Z', '2026-01-05T09:00:00.000Z'],
    ['CRON_TZ=America/New_York 0 9 * * *', '2026-01-01T00:00:00Z', '2026-01-01T14:00:00.000Z'],
    ['CRON_TZ=America/New_York 0 9 * * *', '2026-07-01T00:00:00Z', '2026-07-01T13:00:00.000Z'],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('%s after %s is %s', (cron, after, expected) => {
    expect(next(cron, after)).toBe(expected)
  })

  it.each(['', 'nonsense', '* * * *', '* * * * * *', '61 * * * *', 'CRON_TZ=Mars/Base * * * * *', '0 0 * 13 *'])(
    'refuses %j',
    (cron) => {
      expect(next(cron, '2026-01-01T00:00:00Z')).toMatch(/^refused/)
    },
  )
})
