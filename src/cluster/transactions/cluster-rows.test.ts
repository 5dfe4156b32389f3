import { beforeAll, beforeEach, expect, it } from 'vitest'
import { SCHEMA_RANGE, type Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import * as announcements from './cluster-announcements.js'
import * as nodes from './cluster-nodes.js'
import * as partitions from './cluster-partitions.js'
import * as nodesAdmin from './nodes-admin.js'

const NOW = 1_700_000_000_000
const DAY_MS = 86_400_000

describeOnStore('postgres', 'rows of a cluster', (openStore) => {
  let store: Store

  beforeAll(async () => {
    store = await openStore()
  })

  beforeEach(async () => {
    for (const { incarnation } of await store.run(nodes.list, {})) await store.run(nodes.leave, { incarnation })
  })

  /** Registers a node, and opens it. */
  async function join(name: string): Promise<number> {
    const incarnation = await start(name)
    await store.run(nodes.open, { incarnation })
    return incarnation
  }

  async function start(name: string): Promise<number> {
    const node = { name, dir: name, advertise: '', version: '1', config: '{}', region: null, range: SCHEMA_RANGE }
    const registered = await store.run(nodes.register, { node, now: NOW })
    if (registered.kind !== 'registered') throw new Error(registered.kind)
    return registered.incarnation
  }

  const take = (incarnation: number, most: number) => store.run(partitions.take, { incarnation, most })
  const look = (seen = 0) => store.run(partitions.look, { seen })
  const epochOf = async (partition: number) => (await look()).partitions[partition]?.epoch ?? 0
  const give = (from: number, to: number, partition: number, epoch: number) =>
    store.run(partitions.give, { from, gifts: [{ partition, epoch, to, notes: '1' }], becomes: 'owner' })
  const drain = (name: string) => store.run(nodesAdmin.setNodeState, { name, state: 'draining' })
  const stateOf = async (incarnation: number) =>
    (await look()).nodes.find((node) => node.incarnation === incarnation)?.state

  it('refuse a gift of an earlier epoch, so that one that arrives late does not undo a reclaim', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const [{ epoch = 0 } = {}] = await take(a, 1)
    expect(await give(a, a, 0, epoch)).toEqual([0])
    expect(await give(a, b, 0, epoch)).toEqual([])
    expect((await look()).partitions[0]).toMatchObject({ owner: a, epoch: epoch + 1 })
  })

  it('refuse gifts to nodes that still start, that drain or that have left, unless the giver keeps its own', async () => {
    const [a, b, starting, left] = [await join('a'), await join('b'), await start('starting'), await join('left')]
    await store.run(nodes.leave, { incarnation: left })
    await take(a, 1)
    for (const name of ['a', 'b']) await drain(name)
    const epoch = await epochOf(0)
    for (const to of [b, starting, left]) expect([to, await give(a, to, 0, epoch)]).toEqual([to, []])
    expect(await give(a, a, 0, epoch)).toEqual([0])
  })

  it('give free partitions without notes, each in a new epoch, to nodes that take part', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const [{ epoch = 0 } = {}] = await take(a, 1)
    await give(a, b, 0, epoch)
    await store.run(nodes.declareDead, { incarnation: b, beat: 0 })
    expect(await take(b, 1)).toEqual([])
    expect(await take(a, 1)).toEqual([{ partition: 0, owner: a, epoch: epoch + 2 }])
    expect(await store.run(partitions.notes, { partitions: [0] })).toEqual([
      { partition: 0, epoch: epoch + 2, notes: null },
    ])
  })

  it('have one leader, whose choice does not touch the version of the announcements', async () => {
    const announced = (payload: string) =>
      store.run(announcements.announce, { sender: 1, topic: 't', payload, now: NOW })
    const before = await announced('1')
    const [a, b] = [await join('a'), await join('b')]
    expect(await store.run(partitions.lead, { incarnation: a })).toBe(true)
    expect(await store.run(partitions.lead, { incarnation: b })).toBe(false)
    expect([(await look()).leader, await announced('2')]).toEqual([a, before + 1])
    await store.run(nodes.leave, { incarnation: a })
    expect((await look()).leader).toBeNull()
    expect(await store.run(partitions.lead, { incarnation: a })).toBe(false)
    expect(await store.run(partitions.lead, { incarnation: b })).toBe(true)
  })

  it('of announcements are kept until every node has handled them, and read after a version', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const announced = () => store.run(announcements.announce, { sender: a, topic: 't', payload: '', now: NOW })
    const [first, second] = [await announced(), await announced()]
    const versionsAfter = async (seen: number) => (await look(seen)).announcements.map(({ version }) => version)
    expect([await versionsAfter(first - 1), await versionsAfter(first)]).toEqual([[first, second], [second]])
    const behind = () => store.run(announcements.incarnationsBehind, { version: first })
    expect(await behind()).toEqual([a, b])
    await store.run(nodes.beat, { incarnation: a, seen: second, now: NOW })
    await store.run(announcements.dropSeen, {})
    expect([await behind(), await versionsAfter(first - 1)]).toEqual([[b], [first, second]])
    await store.run(nodes.beat, { incarnation: b, seen: first, now: NOW })
    await store.run(announcements.dropSeen, {})
    expect([await behind(), await versionsAfter(0)]).toEqual([[], [second]])
    await join('later')
    expect(await behind()).toEqual([])
  })

  it('of a node that has beaten since are not set to dead', async () => {
    const a = await join('a')
    const beat = () => store.run(nodes.beat, { incarnation: a, seen: 0, now: NOW })
    await beat()
    expect(await store.run(nodes.declareDead, { incarnation: a, beat: 0 })).toBe(false)
    expect(await store.run(nodes.declareDead, { incarnation: a, beat: 1 })).toBe(true)
    expect([await beat(), await store.run(nodes.isLive, { incarnation: a })]).toEqual([false, false])
    // What a late request would change has other owners now.
    await store.run(nodes.leave, { incarnation: a })
    await store.run(nodes.open, { incarnation: a })
    await store.run(partitions.give, { from: a, gifts: [], becomes: 'draining' })
    expect(await store.run(nodesAdmin.list, {})).toContainEqual(expect.objectContaining({ name: 'a', state: 'dead' }))
  })

  it('free everything of a node that leaves, in new epochs', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const [{ epoch = 0 } = {}] = await take(a, 1)
    await store.run(partitions.lead, { incarnation: a })
    await store.run(nodes.leave, { incarnation: a })
    const { leader, partitions: rows } = await look()
    expect([leader, rows[0]]).toEqual([null, { partition: 0, owner: null, epoch: epoch + 1 }])
    // The gift of a node that has left comes too late.
    expect(await give(a, b, 0, epoch)).toEqual([])
  })

  it('of a node that gives up its duties: the leadership alone, or also its part', async () => {
    const [a, b] = [await join('a'), await start('b')]
    await take(a, 2)
    for (const [becomes, state] of [
      ['resigned', 'live'],
      ['draining', 'draining'],
    ] as const) {
      await store.run(partitions.lead, { incarnation: a })
      const gifts = [0, 1].map((partition) => ({ partition, epoch: 0, to: b, notes: null }))
      expect(await store.run(partitions.give, { from: a, gifts, becomes })).toEqual([])
      expect([(await look()).leader, await stateOf(a)]).toEqual([null, state])
      expect(await store.run(nodes.isLive, { incarnation: a })).toBe(true)
    }
    // Until another node is open, it takes what is free.
    expect(await take(a, 1)).toHaveLength(1)
    await store.run(nodes.open, { incarnation: b })
    expect(await take(a, 1)).toEqual([])
  })

  it('of a node are listed, changed and removed with its newest incarnation', async () => {
    await join('again')
    const incarnation = await join('again')
    const other = await join('other')
    const listed = async () =>
      (await store.run(nodesAdmin.list, {})).filter(({ name }) => ['again', 'other'].includes(name))
    await store.run(partitions.lead, { incarnation })
    await drain('again')
    expect(await listed()).toMatchObject([
      { name: 'again', incarnation, state: 'draining', leader: 1 },
      { name: 'other', incarnation: other, state: 'live', leader: 0 },
    ])
    const remove = () => store.run(nodesAdmin.remove, { name: 'again' })
    await expect(remove()).rejects.toMatchObject({ code: 'node_running' })
    await store.run(nodes.declareDead, { incarnation, beat: 0 })
    await expect(drain('again')).rejects.toMatchObject({ code: 'node_not_running' })
    await remove()
    expect(await listed()).toMatchObject([{ name: 'other' }])
    expect(await store.run(partitions.lead, { incarnation: other })).toBe(true)
  })

  it('of an ended incarnation are kept for a week, and longer while it owns something', async () => {
    const [owner, leader, gone] = [await join('owner'), await join('leader'), await join('gone')]
    await take(owner, 1)
    await store.run(partitions.lead, { incarnation: leader })
    for (const incarnation of [owner, leader, gone]) await store.run(nodes.declareDead, { incarnation, beat: 0 })
    const names = async () => (await store.run(nodesAdmin.list, {})).map(({ name }) => name)
    await store.run(nodes.dropOld, { now: NOW + 7 * DAY_MS })
    expect(await names()).toEqual(expect.arrayContaining(['gone', 'leader', 'owner']))
    await store.run(nodes.dropOld, { now: NOW + 7 * DAY_MS + 1 })
    expect(await names()).toEqual(['leader', 'owner'])
  })
})
