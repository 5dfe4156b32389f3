import { expect, it } from 'vitest'
import type { PendingRow } from '../transactions/messages.js'
import { Ended } from './ended.js'

/** The columns that decide whether an attempt is over. */
const row = (seq: number, group: number, next_at = 0) => ({ seq, group_key: group, next_at }) as PendingRow

it('the memory of ended attempts is unsure of a message that is brought back while it remembers its drop', () => {
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

it('the memory of ended attempts holds one to two generations, and no attempt that may be offered again', () => {
  const ended = new Ended(3)
  const isOver = (seq: number, nextAt = seq) => ended.isOver(row(seq, 0, nextAt))
  for (const seq of [1, 2, 3, 4, 5, 6]) ended.attemptOver({ seq, nextAt: seq, origin: 'load' })
  expect([1, 2, 3, 4, 5, 6].map((seq) => isOver(seq))).toEqual([true, true, true, true, true, true])
  ended.attemptOver({ seq: 7, nextAt: 7, origin: 'load' })
  expect([1, 3, 4, 7].map((seq) => isOver(seq))).toEqual([false, false, true, true])
  expect(isOver(7, 8)).toBe(false)
  for (const seq of [4, 7]) ended.parked({ seq, nextAt: seq })
  expect([4, 6, 7].map((seq) => isOver(seq))).toEqual([false, true, false])
})

it('the memory of ended attempts forgets a drop only after everything that ran when it was aged', () => {
  const ended = new Ended()
  expect(ended.age()).toBe(false)
  ended.drop({ seqs: [1] })
  expect(ended.age()).toBe(true)
  ended.drop({ seqs: [2] })
  expect(ended.age()).toBe(false)
  ended.forgetAged()
  expect([ended.isOver(row(1, 0)), ended.isOver(row(2, 0))]).toEqual([false, true])
  expect(ended.age()).toBe(true)
})
