import { describe, expect, it } from 'vitest'
import { ChunkList } from './chunk-list.js'

const BYTES = 40_000
const whole = Buffer.from(Array.from({ length: BYTES }, (_none, index) => index % 251))

/** A list of these bytes, in chunks that begin at these indexes. */
function listOf(starts: readonly number[]): ChunkList {
  const list = new ChunkList()
  for (const [index, start] of starts.entries()) list.add(whole.subarray(start, starts[index + 1]))
  return list
}

const every = (bytes: number): number[] => Array.from({ length: Math.ceil(BYTES / bytes) }, (_none, n) => n * bytes)

describe('bytes in chunks', () => {
  it.each([
    ['one', [0]],
    ['empty ones', [0, 0, 0, 5, 5, 9, 9]],
    ['bytes', every(1)],
    ['small ones', every(700)],
    ['large ones', every(5_000)],
    ['some of each', [0, 1, 2, 3, 5_000, 5_001, 5_002, 9_000, ...every(1).slice(9_001)]],
  ])('keep their order: %s', (_what, starts) => {
    const list = listOf(starts)
    expect(list.bytes).toBe(BYTES)
    expect(Buffer.concat(list.chunks).equals(whole)).toBe(true)
  })

  it('take memory in proportion to their length', () => {
    const { chunks } = listOf(every(1))
    const memory = chunks.slice(1).reduce((sum, chunk) => sum + chunk.buffer.byteLength, 0)
    expect(chunks.length).toBeLessThan(20)
    expect(memory).toBeLessThan(2 * BYTES)
    expect(listOf([0, 1]).chunks).toHaveLength(2)
  })

  it('are gone when they are dropped', () => {
    const list = listOf(every(1))
    list.clear()
    list.add(Buffer.from('new'))
    list.add(Buffer.from('er'))
    expect([list.bytes, Buffer.concat(list.chunks).toString()]).toEqual([5, 'newer'])
  })
})
