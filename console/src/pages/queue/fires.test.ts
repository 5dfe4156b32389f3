import { expect, it } from 'vitest'
import { nextFires, unzoned, zoned } from './fires.js'

const NOON = Date.UTC(2026, 0, 1, 12)
const HOUR_MS = 3_600_000

it('the form shows the next five fires', () => {
  expect(nextFires('0 * * * *', NOON)).toEqual({ kind: 'times', times: [1, 2, 3, 4, 5].map((n) => NOON + n * HOUR_MS) })
})

it('the fires use the selected time zone', () => {
  const fires = nextFires(zoned('0 9 * * *', 'Asia/Tokyo'), NOON, 1)
  expect(fires).toEqual({ kind: 'times', times: [Date.UTC(2026, 0, 2, 0)] })
})

it('errors and expressions that never match are reported', () => {
  expect(nextFires('', NOON)).toMatchObject({ kind: 'problem' })
  expect(nextFires('61 * * * *', NOON)).toMatchObject({ kind: 'problem' })
  expect(nextFires('0 0 31 2 *', NOON)).toEqual({ kind: 'problem', problem: 'No time matches this expression' })
})

it('the time zone is written before the expression and read back', () => {
  expect(unzoned(zoned('0 9 * * 1-5', 'Europe/Berlin'))).toEqual({ zone: 'Europe/Berlin', expression: '0 9 * * 1-5' })
  expect(unzoned(zoned('0 9 * * 1-5', 'UTC'))).toEqual({ zone: undefined, expression: '0 9 * * 1-5' })
  expect(unzoned('TZ=Europe/Berlin 0 9 * * 1-5')).toEqual({ zone: 'Europe/Berlin', expression: '0 9 * * 1-5' })
})
