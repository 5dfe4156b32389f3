import { describe, expect, it } from 'vitest'
import { COMMON_BLOCK, isLent, keep, keepInPlace, ReadMemory } from './lent-memory.js'

describe('keep', () => {
  it('copies bytes of a client and returns bytes that are not lent as they are', () => {
    COMMON_BLOCK.write('abc')
    const lent = COMMON_BLOCK.subarray(0, 3)
    const kept = keep(lent)
    COMMON_BLOCK.write('xyz')
    expect([isLent(lent), isLent(kept), kept.toString()]).toEqual([true, false, 'abc'])
    expect(keep(kept)).toBe(kept)
    expect(keep(COMMON_BLOCK.subarray(0, 20_000)).buffer).not.toBe(COMMON_BLOCK.buffer)
  })

  it('copies few bytes of an engine and takes over the block of many, so that the connection reads into another', () => {
    const memory = new ReadMemory()
    const { block } = memory
    expect(keep(memory.view(100)).buffer).not.toBe(block.buffer)
    expect(memory.block).toBe(block)
    const large = memory.view(20_000)
    expect(keep(large)).toBe(large)
    expect(isLent(large)).toBe(false)
    expect(memory.block.buffer).not.toBe(block.buffer)
  })
})

describe('the memory that a connection reads into', () => {
  it('grows when a read has filled it, until it is kept', () => {
    const memory = new ReadMemory()
    const { length } = memory.block
    memory.view(length - 1)
    expect(memory.block).toHaveLength(length)
    for (let reads = 0; reads < 10; reads++) memory.view(memory.block.length)
    expect(memory.block).toHaveLength(4 * length)
    keepInPlace(memory.view(1))
    expect(memory.block).toHaveLength(length)
  })
})

describe('keepInPlace', () => {
  it('keeps bytes of an engine without a copy and throws for those of a client', () => {
    const memory = new ReadMemory()
    const { block } = memory
    keepInPlace(memory.view(1))
    expect(memory.block.buffer).not.toBe(block.buffer)
    expect(() => keepInPlace(COMMON_BLOCK.subarray(0, 1))).toThrow('can only be copied')
  })
})

describe('the types of lent and kept bytes', () => {
  it('let nobody store lent bytes, or a view of them, as kept ones', () => {
    const lent = new ReadMemory().view(3)
    // @ts-expect-error: lent bytes have to pass through `keep`
    const stored: ReturnType<typeof keep> = lent.subarray(1)
    expect(isLent(stored)).toBe(true)
  })
})
