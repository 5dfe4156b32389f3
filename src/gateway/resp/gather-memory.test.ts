import { expect, it } from 'vitest'
import { CommandParser } from './command-parser.js'
import { GatherMemory } from './gather-memory.js'
import { COMMON_BLOCK, isLent, keep } from './lent-memory.js'

it('the memory is lent to one client after the other, and memory that a frame may still need is not', () => {
  const one = new GatherMemory()
  const first = one.take(10_000)
  expect(isLent(first)).toBe(true)
  expect(keep(first.subarray(0, 10)).buffer).not.toBe(first.buffer)
  const second = one.take(10_000)
  expect([second === first, one.isCurrent(first), one.isCurrent(second)]).toEqual([false, false, true])
  one.giveBack()
  const other = new GatherMemory()
  expect(other.take(10_000)).toBe(first)
  expect(other.take(10_000)).not.toBe(second)
})

it('the memory is not lent for few bytes, nor for very many', () => {
  const memory = new GatherMemory()
  expect([100, 100_000].map((bytes) => memory.take(bytes)).map((taken) => [isLent(taken), taken.length])).toEqual([
    [false, 100],
    [false, 100_000],
  ])
})

it('the memory is not lent to others while a command in it is read again', () => {
  const write = (letter: string): Buffer =>
    Buffer.from(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000\r\n${letter.repeat(9000)}\r\n`)
  const gather = (parser: CommandParser, bytes: Buffer): string => {
    // Clients are read like this: both pieces into the same block.
    for (const piece of [bytes.subarray(0, 6_000), bytes.subarray(6_000)]) {
      piece.copy(COMMON_BLOCK)
      parser.push(COMMON_BLOCK, piece.length)
      if (piece.length < 6_000) return parser.next()
      parser.next()
      parser.release()
    }
    return 'more'
  }
  const [waiting, other] = [new CommandParser(), new CommandParser()]
  expect(gather(waiting, write('a'))).toBe('frame')
  waiting.repeat()
  waiting.release()
  waiting.push(Buffer.from('*1\r\n'))
  waiting.release()
  expect(gather(other, write('b'))).toBe('frame')
  expect(waiting.next()).toBe('frame')
  const { frameBuffer, frameStart, frameEnd } = waiting
  expect(frameBuffer.subarray(frameStart, frameEnd).equals(write('a'))).toBe(true)
})
