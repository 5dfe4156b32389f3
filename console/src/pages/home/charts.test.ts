import { expect, it } from 'vitest'
import { ACTIVITY_KINDS, type Activity } from '../../../../src/contract/console/activity.js'
import { messageSearchOf } from '../queue/search.js'
import { runSearchOf } from '../workflows/search.js'
import { busySteps, CHARTS, sumOf, timesOf, wholeTimesOf } from './charts.js'

const FROM = 1_800_000_000
const activity: Activity = {
  from: FROM,
  step_seconds: 60,
  // Safe: one entry for each kind.
  series: Object.fromEntries(
    ACTIVITY_KINDS.map((kind) => [kind, kind === 'delivered' ? [0, 4, 2] : [0, 0, 0]]),
  ) as Activity['series'],
}

it('the charts show every kind of activity once', () => {
  expect(CHARTS.flatMap(({ parts }) => parts.map(({ kind }) => kind)).sort()).toEqual([...ACTIVITY_KINDS].sort())
})

it('the charts link to lists with filters that these lists understand', () => {
  for (const { list } of CHARTS.flatMap(({ parts }) => parts)) {
    const { to, search } = list(1_800_000_000_000, 1_800_000_059_999)
    if (to === '/messages') expect(messageSearchOf(search)).toEqual(search)
    if (to === '/runs') expect(runSearchOf(search)).toEqual(search)
  }
})

it('the charts add up counts, and have the times of their steps', () => {
  expect(sumOf(activity, 'delivered')).toBe(6)
  expect(busySteps(activity)).toEqual([2, 1])
  expect(timesOf(activity, 1)).toEqual([(FROM + 60) * 1_000, (FROM + 120) * 1_000 - 1])
  expect(wholeTimesOf(activity)).toEqual([FROM * 1_000, (FROM + 180) * 1_000 - 1])
})
