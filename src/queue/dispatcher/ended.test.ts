import { expect, it } from 'vitest'
import type { PendingRow } from '../transactions/messages.js'
import { Ended } from './ended.js'

/** The columns that decide whether an attempt is over. */
const row = (seq: number, group: number) => ({ seq, group_key: group, next_at: 0 }) as PendingRow

it('takes offers of a dropped group only if they are brought back', () => {
  const ended = new Ended()
  ended.drop({ groupKeys: [7] })
  expect(ended.isOver(row(1, 7))).toBe(true)
  ended.readmit(row(2, 7))
  expect(ended.isOver(row(2, 7))).toBe(false)
  expect(ended.isOver(row(1, 7))).toBe(true)
  ended.drop({ groupKeys: [7] })
  expect(ended.isOver(row(2, 7))).toBe(true)
})

it('forgets what was brought back together with the drops', () => {
  const ended = new Ended()
  ended.drop({ seqs: [3] })
  ended.readmit(row(3, 0))
  expect(ended.age()).toBe(true)
  expect(ended.isOver(row(3, 0))).toBe(false)
  ended.forgetAged()
  ended.drop({ seqs: [3] })
  expect(ended.isOver(row(3, 0))).toBe(true)
})
