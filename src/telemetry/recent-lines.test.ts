import { expect, it } from 'vitest'
import { RecentLines } from './recent-lines.js'

it('the buffer keeps the newest lines, under their numbers', () => {
  const lines = new RecentLines()
  for (let i = 0; i < 12_345; i++) lines.add(`{"n":${i}}\n`)
  expect([lines.first, lines.next, lines.at(7_344), lines.at(12_345)]).toEqual([7_345, 12_345, undefined, undefined])
  expect([lines.at(7_345), lines.at(12_344)]).toEqual([
    { number: 7_345, json: '{"n":7345}' },
    { number: 12_344, json: '{"n":12344}' },
  ])
})

it('the buffer holds a bounded amount of text', () => {
  const lines = new RecentLines()
  const megabyte = 'x'.repeat(2 ** 20)
  for (let i = 0; i < 10; i++) lines.add(megabyte)
  expect(lines.next - lines.first).toBe(4)
  lines.add('x'.repeat(2 ** 23))
  expect(lines.next).toBe(10)
  lines.add(megabyte)
  expect([lines.first, lines.next]).toEqual([7, 11])
})

it('the buffer notifies watchers until they leave', () => {
  const lines = new RecentLines()
  let seen = 0
  const leave = lines.watch(() => seen++)
  lines.add('a')
  leave()
  lines.add('b')
  expect(seen).toBe(1)
})
