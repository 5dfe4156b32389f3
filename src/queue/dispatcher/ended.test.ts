import { expect, it } from 'vitest'
import type { PendingRow } from '../transactions/messages.js'
import { Ended } from './ended.js'

/** The columns that decide whether an attempt is over. */
const row = (seq: number, group: number) => ({ seq, group_key: group, next_at: 0 }) as PendingRow

it('is unsure of a message that is brought back while a drop of it is remembered', () => {
  const ended = new Ended()
  ended.drop({ groupKeys: [7] })
  expect([ended.isOver(row(1, 7)), ended.readmit(row(1, 7)), ended.readmit(row(1, 8))]).toEqual([
    true,
    'unsure',
    'back',
  ])
  expect(ended.age()).toBe(true)
  expect(ended.readmit(row(1, 7))).toBe('unsure')
  ended.forgetAged()
  expect([ended.isOver(row(1, 7)), ended.readmit(row(1, 7))]).toEqual([false, 'back'])
})
