import { describe, expect, it } from 'vitest'
import { ClientMemoryBudget, type Holder } from './client-memory.js'

class Client implements Holder {
  heldBytes = 0
  gaveWay = false
  readonly owner: string

  constructor(owner: string) {
    this.owner = owner
  }

  evict(): void {
    this.gaveWay = true
    this.heldBytes = 0
  }
}

const LIMIT_BYTES = 3_200

function grow(memory: ClientMemoryBudget, client: Client, bytes: number): void {
  client.heldBytes += bytes
  memory.grew(client, bytes)
}

describe('memory that is held for clients', () => {
  it('costs whoever is served nothing when another throws as it gives way', () => {
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
    expect([faults, served.gaveWay]).toEqual([[defect], false])
  })

  it('is left alone up to the bound', () => {
    const memory = new ClientMemoryBudget(LIMIT_BYTES)
    const clients = [new Client('a'), new Client('b')]
    for (const client of clients) grow(memory, client, LIMIT_BYTES / 2)
    expect(clients.map(({ gaveWay }) => gaveWay)).toEqual([false, false])
  })

  it('is given up by the owner that has most of it, largest holder first, until the rest fits', () => {
    const memory = new ClientMemoryBudget(LIMIT_BYTES)
    const single = new Client('single')
    grow(memory, single, 1_000)
    const crowd = Array.from({ length: 30 }, () => new Client('crowd'))
    for (const [index, client] of crowd.entries()) grow(memory, client, 100 + index)
    expect(single.gaveWay).toBe(false)
    const held = [single, ...crowd].reduce((sum, { heldBytes }) => sum + heldBytes, 0)
    expect(held).toBeLessThanOrEqual(LIMIT_BYTES + LIMIT_BYTES / 32)
    expect(held).toBeGreaterThan(LIMIT_BYTES / 2)
    expect(crowd[0]?.gaveWay).toBe(false)
    expect(crowd.some(({ gaveWay }) => gaveWay)).toBe(true)
  })

  it('does not count for those who are gone', () => {
    const memory = new ClientMemoryBudget(LIMIT_BYTES)
    const gone = new Client('a')
    grow(memory, gone, LIMIT_BYTES)
    memory.gone(gone)
    const next = new Client('a')
    grow(memory, next, LIMIT_BYTES)
    expect([gone, next].map(({ gaveWay }) => gaveWay)).toEqual([false, false])
  })
})
