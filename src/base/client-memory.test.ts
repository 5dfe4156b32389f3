import { totalmem } from 'node:os'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ClientMemoryBudget, type MemoryConsumer } from './client-memory.js'

class Client implements MemoryConsumer {
  heldBytes = 0
  isEvicted = false
  readonly owner: string

  constructor(owner: string) {
    this.owner = owner
  }

  evict(): void {
    this.isEvicted = true
    this.heldBytes = 0
  }
}

const LIMIT_BYTES = 3_200

function grow(memory: ClientMemoryBudget, client: Client, bytes: number): void {
  client.heldBytes += bytes
  memory.grow(client, bytes)
}

describe('the memory budget of clients', () => {
  it('does not fail the client being served when evicting another one throws', () => {
    const faults: unknown[] = []
    const memory = new ClientMemoryBudget(LIMIT_BYTES, (fault) => faults.push(fault))
    const defect = new Error('a defect')
    const broken = Object.assign(new Client('a'), {
      evict: () => {
        throw defect
      },
    })
    const served = new Client('b')
    grow(memory, broken, 2_000)
    expect(() => grow(memory, served, 1_900)).not.toThrow()
    expect([faults, served.isEvicted]).toEqual([[defect], false])
  })

  it('evicts nobody up to the limit', () => {
    const memory = new ClientMemoryBudget(LIMIT_BYTES)
    const clients = [new Client('a'), new Client('b')]
    for (const client of clients) grow(memory, client, LIMIT_BYTES / 2)
    expect(clients.map(({ isEvicted }) => isEvicted)).toEqual([false, false])
  })

  it('evicts from the owner that holds the most, largest consumer first, until the rest fits', () => {
    const memory = new ClientMemoryBudget(LIMIT_BYTES)
    const single = new Client('single')
    grow(memory, single, 1_000)
    const crowd = Array.from({ length: 30 }, () => new Client('crowd'))
    for (const [index, client] of crowd.entries()) grow(memory, client, 100 + index)
    expect(single.isEvicted).toBe(false)
    const held = [single, ...crowd].reduce((sum, { heldBytes }) => sum + heldBytes, 0)
    expect(held).toBeLessThanOrEqual(LIMIT_BYTES + LIMIT_BYTES / 32)
    expect(held).toBeGreaterThan(LIMIT_BYTES / 2)
    expect(crowd[0]?.isEvicted).toBe(false)
    expect(crowd.some(({ isEvicted }) => isEvicted)).toBe(true)
  })

  it('does not count consumers that were removed', () => {
    const memory = new ClientMemoryBudget(LIMIT_BYTES)
    const gone = new Client('a')
    grow(memory, gone, LIMIT_BYTES)
    memory.remove(gone)
    const next = new Client('a')
    grow(memory, next, LIMIT_BYTES)
    expect([gone, next].map(({ isEvicted }) => isEvicted)).toEqual([false, false])
  })
})

describe('the default limit', () => {
  afterEach(() => void vi.restoreAllMocks())

  it.each([
    ['of the limit of a container', 512 * 2 ** 20, 64 * 2 ** 20],
    ['of the machine, where nothing is limited', 0, Math.min(2 ** 30, Math.floor(totalmem() / 8))],
    ['of the machine, where the limit is beyond it', 2 ** 63, Math.min(2 ** 30, Math.floor(totalmem() / 8))],
  ])('is an eighth %s', (_what, constrainedBytes, limitBytes) => {
    vi.spyOn(process, 'constrainedMemory').mockReturnValue(constrainedBytes)
    expect(new ClientMemoryBudget().limitBytes).toBe(limitBytes)
  })
})
