import { describe, expect, it } from 'vitest'
import { COMMON_BLOCK, copied, isLent, keep, kept, ReadMemory } from './lent-memory.js'

describe('bytes that are lent', () => {
  it('are copied where they are needed for longer, and others are not', () => {
    COMMON_BLOCK.write('abc')
    const lent = COMMON_BLOCK.subarray(0, 3)
    const own = copied(lent)
    COMMON_BLOCK.write('xyz')
    expect([isLent(lent), isLent(own), own.toString()]).toEqual([true, false, 'abc'])
    expect(copied(own)).toBe(own)
    expect(kept(own)).toBe(own)
  })

  it('of an engine make it read into other memory once much of them is kept', () => {
    const memory = new ReadMemory()
    const { block } = memory
    expect(kept(memory.view(100)).buffer).not.toBe(block.buffer)
    expect(memory.block).toBe(block)
    const large = memory.view(20_000)
    expect(kept(large)).toBe(large)
    expect(isLent(large)).toBe(false)
    expect(memory.block.buffer).not.toBe(block.buffer)
  })

  it('of an engine can be kept by whoever already holds them, those of a client cannot', () => {
    const memory = new ReadMemory()
    const { block } = memory
    keep(memory.view(1))
    expect(memory.block.buffer).not.toBe(block.buffer)
    expect(() => keep(COMMON_BLOCK.subarray(0, 1))).toThrow('can only be copied')
    expect(kept(COMMON_BLOCK.subarray(0, 20_000)).buffer).not.toBe(COMMON_BLOCK.buffer)
  })
})
