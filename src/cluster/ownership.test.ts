import { describe, expect, it } from 'vitest'
import { Holdings } from './holdings.js'
import { type NodeView, type PartitionView, planDrain, planOwnership } from './ownership.js'
import type { Gained, ReleasedPartitions } from './types.js'

const node = (incarnation: number, more: Partial<NodeView> = {}): NodeView => ({
  incarnation,
  state: 'live',
  is_open: 1,
  ...more,
})

/** 64 partitions; `owned` says how many of them each node owns. */
function partitionsOf(owned: Readonly<Record<number, number>>): PartitionView[] {
  const owners = Object.entries(owned).flatMap(([owner, count]) => new Array<number>(count).fill(Number(owner)))
  return Array.from({ length: 64 }, (_, partition) => ({ partition, owner: owners[partition] ?? null, epoch: 1 }))
}

describe('a node that looks at the partitions', () => {
  it('takes partitions without an owner, up to its share', () => {
    const nodes = [node(1), node(2), node(3)]
    expect(planOwnership({ me: 1, nodes, partitions: partitionsOf({}) }).take).toBe(22)
    expect(planOwnership({ me: 1, nodes, partitions: partitionsOf({ 1: 20, 2: 22, 3: 20 }) }).take).toBe(2)
    expect(planOwnership({ me: 1, nodes, partitions: partitionsOf({ 1: 22, 2: 10 }) })).toMatchObject({ take: 0 })
    expect(planOwnership({ me: 1, nodes, partitions: partitionsOf({ 1: 10, 9: 54 }) }).take).toBe(12)
  })

  it('counts a node that still starts, or drains, as present, and gives it nothing', () => {
    const nodes = [node(1), node(2, { is_open: 0 }), node(3, { state: 'draining' })]
    expect(planOwnership({ me: 1, nodes, partitions: partitionsOf({ 1: 44, 3: 20 }) })).toEqual({
      take: 0,
      give: undefined,
    })
    expect(planOwnership({ me: 3, nodes, partitions: partitionsOf({ 3: 20 }) }).take).toBe(0)
  })

  it('takes partitions while it drains if no other node can', () => {
    const drained = [node(1, { state: 'draining' }), node(2, { state: 'draining' })]
    expect(planOwnership({ me: 1, nodes: drained, partitions: partitionsOf({ 2: 24 }) }).take).toBe(32)
    const uneven = partitionsOf({ 1: 40, 2: 24 })
    expect(planOwnership({ me: 1, nodes: drained, partitions: uneven })).toEqual({ take: 0, give: undefined })
    const starting = [...drained, node(3, { is_open: 0 })]
    expect(planOwnership({ me: 1, nodes: starting, partitions: partitionsOf({}) }).take).toBe(32)
    const others = [...drained, node(3)]
    expect(planOwnership({ me: 1, nodes: others, partitions: partitionsOf({}) }).take).toBe(0)
  })

  it('gives its part of the difference to the node with the fewest partitions', () => {
    const nodes = [node(1), node(2), node(3)]
    const give = (owned: Readonly<Record<number, number>>) =>
      planOwnership({ me: 1, nodes, partitions: partitionsOf(owned) }).give
    expect(give({ 1: 32, 2: 32 })).toEqual({ count: 8, to: 3 })
    expect(give({ 1: 26, 2: 20, 3: 18 })).toEqual({ count: 2, to: 3 })
    expect(give({ 1: 23, 2: 20, 3: 21 })).toEqual({ count: 1, to: 2 })
    expect(give({ 1: 22, 2: 21, 3: 21 })).toBeUndefined()
  })

  it('spreads the partitions of a draining node', () => {
    const nodes = [node(1, { state: 'draining' }), node(2), node(3)]
    const partitions = partitionsOf({ 1: 24, 2: 18, 3: 22 })
    const heirs = [...planDrain({ me: 1, nodes, partitions }, [0, 1, 2, 3, 4, 5]).values()]
    expect(heirs).toEqual([2, 2, 2, 2, 2, 3])
    expect(planDrain({ me: 1, nodes: [node(1)], partitions }, [0])).toEqual(new Map())
  })
})

describe('the holdings of a node', () => {
  const holding = () => {
    const holdings = new Holdings()
    const calls: unknown[] = []
    holdings.hold({
      gained: (gained: readonly Gained[]) => void calls.push(['gained', ...gained]),
      release: (): Promise<ReleasedPartitions> => Promise.resolve({ notes: new Map(), busy: [] }),
      lost: (lost) => void calls.push(['lost', ...lost]),
    })
    holdings.gain(1, [{ partition: 5, epoch: 3 }])
    return { holdings, calls }
  }

  it('ignore rows of an older epoch, and late answers', () => {
    const { holdings, calls } = holding()
    holdings.reconcile(1, [{ partition: 5, owner: 2, epoch: 2 }])
    expect(holdings.owns(5)).toBe(true)
    holdings.gave([{ partition: 5, epoch: 3, to: 2 }])
    holdings.reconcile(1, [{ partition: 5, owner: 1, epoch: 3 }])
    holdings.gain(1, [{ partition: 5, epoch: 3 }])
    expect([holdings.owns(5), holdings.ownerOf(5)]).toEqual([false, 2])
    expect(calls).toEqual([
      ['gained', { partition: 5 }],
      ['lost', 5],
    ])
  })

  it('follow a store that has lost commits, unless the look was sent before a change', () => {
    const { holdings, calls } = holding()
    const before = holdings.epochs
    holdings.gain(1, [{ partition: 5, epoch: 4 }])
    holdings.reconcile(1, [{ partition: 5, owner: 2, epoch: 3 }], before)
    expect(holdings.owns(5)).toBe(true)
    // PostgreSQL has failed over to a server without the commit of epoch 4.
    holdings.reconcile(1, [{ partition: 5, owner: 2, epoch: 3 }], holdings.epochs)
    expect([holdings.owns(5), holdings.ownerOf(5), calls.at(-1)]).toEqual([false, 2, ['lost', 5]])
    holdings.gain(1, [{ partition: 5, epoch: 4 }])
    // Since then another node has begun an epoch with the same number.
    holdings.reconcile(1, [{ partition: 5, owner: 3, epoch: 4 }], holdings.epochs)
    expect([holdings.owns(5), holdings.ownerOf(5)]).toEqual([false, 3])
    const back = holdings.reconcile(1, [{ partition: 5, owner: 1, epoch: 2 }], holdings.epochs)
    expect(back).toEqual({ arriving: [], doubtful: [{ partition: 5, epoch: 2 }] })
    holdings.gain(1, [{ partition: 5, epoch: 3 }])
    expect(holdings.owns(5)).toBe(true)
  })

  it('lose partitions that another node owns, and find partitions that came back', () => {
    const { holdings, calls } = holding()
    expect(holdings.reconcile(1, [{ partition: 5, owner: 1, epoch: 5 }])).toEqual({
      arriving: [{ partition: 5, epoch: 5 }],
      doubtful: [],
    })
    holdings.gain(1, [{ partition: 5, epoch: 5, notes: 'n' }])
    holdings.reconcile(1, [{ partition: 5, owner: 2, epoch: 6 }])
    expect(calls.slice(1)).toEqual([
      ['lost', 5],
      ['gained', { partition: 5, notes: 'n' }],
      ['lost', 5],
    ])
  })

  it('do not trust the row of a partition that they may have given away', () => {
    const { holdings } = holding()
    holdings.leave([5])
    expect([holdings.owns(5), holdings.has(5)]).toEqual([false, true])
    holdings.doubt([{ partition: 5, epoch: 3 }])
    expect(holdings.reconcile(1, [{ partition: 5, owner: 1, epoch: 3 }])).toEqual({
      arriving: [],
      doubtful: [{ partition: 5, epoch: 3 }],
    })
    holdings.gain(1, [{ partition: 5, epoch: 4 }])
    expect(holdings.owns(5)).toBe(true)
  })

  it('keep a partition that came back before the answer to giving it away', () => {
    const { holdings, calls } = holding()
    holdings.reconcile(1, [{ partition: 5, owner: 2, epoch: 4 }])
    holdings.gain(1, [{ partition: 5, epoch: 5 }])
    holdings.gave([{ partition: 5, epoch: 3, to: 2 }])
    holdings.doubt([{ partition: 5, epoch: 3 }])
    expect([holdings.owns(5), holdings.ownerOf(5), calls.at(-1)]).toEqual([true, 1, ['gained', { partition: 5 }]])
  })

  it('gain no partition twice in one epoch, not even one that was lost since', () => {
    const { holdings, calls } = holding()
    holdings.gain(1, [{ partition: 5, epoch: 3 }])
    expect(calls).toEqual([['gained', { partition: 5 }]])
    holdings.doubt([{ partition: 5, epoch: 3 }])
    holdings.gain(1, [{ partition: 5, epoch: 3 }])
    expect([holdings.owns(5), calls.slice(1)]).toEqual([false, [['lost', 5]]])
  })

  it('act again on partitions that stay, with the notes, but not on those lost meanwhile', () => {
    const { holdings, calls } = holding()
    holdings.gain(
      1,
      [5, 9].map((partition) => ({ partition, epoch: 4 })),
    )
    holdings.leave([5, 9])
    holdings.lose([9])
    holdings.keep([5, 9], new Map([[5, 'notes']]))
    expect([holdings.owns(5), holdings.owns(9)]).toEqual([true, false])
    expect(calls.slice(2)).toEqual([
      ['lost', 9],
      ['gained', { partition: 5, notes: 'notes' }],
    ])
    holdings.keep([5], new Map())
    expect(calls).toHaveLength(4)
  })

  it('choose partitions for new messages in turn: own ones that stay, else those of other nodes', () => {
    const { holdings } = holding()
    holdings.gain(1, [{ partition: 9, epoch: 1 }])
    expect(new Set([holdings.next(), holdings.next()])).toEqual(new Set([5, 9]))
    holdings.leave([5])
    expect([holdings.next(), holdings.next()]).toEqual([9, 9])
    holdings.leave([9])
    const others = new Set(Array.from({ length: 200 }, () => holdings.next()))
    expect([others.size, others.has(5), others.has(9)]).toEqual([62, false, false])
  })
})
