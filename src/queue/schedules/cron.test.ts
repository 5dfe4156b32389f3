import { Cron } from 'croner'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
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
    ['5/20 * * * *', '2026-01-01T00:25:00Z', '2026-01-01T00:45:00.000Z'],
    ['@daily', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00.000Z'],
    ['0 0 30 2 *', '2026-01-01T00:00:00Z', undefined],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('%s after %s is %s', (cron, after, expected) => {
    expect(next(cron, after)).toBe(expected)
  })

  it.each([
    '',
    'nonsense',
    '* * * *',
    '* * * * * *',
    '61 * * * *',
    'CRON_TZ=Mars/Base * * * * *',
    '0 0 * 13 *',
    '2026-02-01T00:00:00',
    '@reboot',
  ])('refuses %j', (cron) => {
    expect(next(cron, '2026-01-01T00:00:00Z')).toMatch(/^refused/)
  })

  it('is not evaluated again for a time that is known', () => {
    const search = vi.spyOn(Cron.prototype, 'nextRun')
    onTestFinished(() => search.mockRestore())
    const cron = 'CRON_TZ=Europe/Berlin 7 * * * *'
    const times = ['00:00:00', '00:06:59', '00:03:00', '00:07:00', '00:00:00'].map((at) =>
      next(cron, `2026-01-01T${at}Z`),
    )
    expect(times.map((at) => at?.slice(11, 16))).toEqual(['00:07', '00:07', '00:07', '01:07', '00:07'])
    expect(search).toHaveBeenCalledTimes(3)
  })

  const fires = (cron: string, from: string, until: string): string[] => {
    const all: string[] = []
    for (let at = next(cron, from); at !== undefined && at < until; at = next(cron, at)) all.push(at.slice(5, 16))
    return all
  }

  it.each([
    [
      'fires later when the clocks skip it',
      '30 2 * * *',
      '03-28',
      '03-31',
      ['03-28T01:30', '03-29T01:00', '03-30T00:30'],
    ],
    [
      'fires once when the clocks repeat it',
      '30 2 * * *',
      '10-24',
      '10-27',
      ['10-24T00:30', '10-25T00:30', '10-26T01:30'],
    ],
  ])('at a time of day %s', (_how, cron, from, until, expected) => {
    expect(fires(`CRON_TZ=Europe/Berlin ${cron}`, `2026-${from}T00:00:00Z`, `2026-${until}`)).toEqual(expected)
  })

  it.each(['2026-03-29', '2026-10-25'])('for every quarter of an hour fires evenly through %s', (day) => {
    const all = fires('CRON_TZ=Europe/Berlin */15 * * * *', `${day}T00:00:00Z`, `${day}T03:00:01Z`)
    expect(all).toHaveLength(12)
    expect(new Set(all.map((at) => Date.parse(`2026-${at}Z`) % 900_000))).toEqual(new Set([0]))
  })
})
