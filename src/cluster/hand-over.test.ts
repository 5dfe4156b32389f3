import { beforeAll, beforeEach, expect, it } from 'vitest'
import { yieldToEventLoop } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { SCHEMA_RANGE, type Store } from '../store/index.js'
import { describeOnStore } from '../store/testing/index.js'
import { wrappedStore } from '../store/testing/wrapped-store.js'
import { HandOver } from './hand-over.js'
import { Holdings } from './holdings.js'
import { RecordingHolder } from './testing/node-rig.js'
import * as nodeRows from './transactions/cluster-nodes.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import { type Incarnation, PARTITIONS, type ReleasedPartitions } from './types.js'

const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition)

/** A hand-over of one node on a real store. The test plays the other nodes and the clock. */
describeOnStore('sqlite', 'a hand-over', (openStore) => {
  let store: Store
  let nowMs: number
  let holdings: Holdings
  let holder: RecordingHolder
  let me: Incarnation
  let isOver: boolean
  /** Nodes that confirm what they are given. */
  let answering: Set<Incarnation>
  let asked: unknown[]
  let woken: Incarnation[]
  let onAsked: () => Promise<void>
  let onGiven: (partitions: number) => void
  let handOver: HandOver
  /** Called before each operation of the node on the store. */
  let beforeRun: (operation: string) => Promise<void>

  beforeAll(async () => {
    store = await openStore()
  })

  beforeEach(async () => {
    for (const { incarnation } of await store.run(nodeRows.list, {})) await store.run(nodeRows.leave, { incarnation })
    nowMs = 0
    isOver = false
    ;[answering, asked, woken] = [new Set(), [], []]
    ;[onAsked, onGiven, beforeRun] = [async () => undefined, () => undefined, async () => undefined]
    ;[holdings, holder] = [new Holdings(), new RecordingHolder()]
    holdings.hold(holder)
    me = await join('me')
    handOver = makeHandOver()
    await look()
    handOver.gain(await store.run(partitionRows.take, { incarnation: me, most: PARTITIONS }))
  })

  const makeHandOver = () =>
    new HandOver({
      store: wrappedStore(store, async (operation, args) => {
        await beforeRun(operation.name)
        return store.run(operation, args)
      }),
      holdings,
      me: () => me,
      isOver: () => isOver,
      notifications: {
        handle: () => undefined,
        ask: async (peers, _topic, payload) => {
          await onAsked()
          asked.push(payload)
          return peers.filter(({ incarnation }) => answering.has(incarnation)).map((peer) => ({ peer, answer: null }))
        },
      },
      heirs: () =>
        [...answering].map((incarnation) => ({ incarnation, name: '', advertise: '', state: 'live' as const })),
      wake: (nodes) => woken.push(...nodes),
      nowMs: () => nowMs,
      pause: async (ms) => {
        nowMs += ms
        await yieldToEventLoop()
      },
      onGiven: (partitions) => onGiven(partitions),
    })

  async function join(name: string): Promise<Incarnation> {
    const node = { name, dir: name, advertise: '', version: '1', config: '{}', region: null, range: SCHEMA_RANGE }
    const registered = await store.run(nodeRows.register, { node, now: 0 })
    if (registered.kind !== 'registered') throw new Error(registered.kind)
    await store.run(nodeRows.open, registered)
    answering.add(registered.incarnation)
    return registered.incarnation
  }

  const rows = async () => ({ ...(await store.run(partitionRows.look, { seen: 0 })), me })
  const look = async () => handOver.receive(holdings.reconcile(me, (await rows()).partitions, holdings.epochs))
  const ownedBy = async (node: Incarnation) =>
    (await rows()).partitions.filter(({ owner }) => owner === node).map(({ partition }) => partition)
  const giveTo = (from: Incarnation, to: Incarnation, partition: number, epoch: number) =>
    store.run(partitionRows.give, { from, gifts: [{ partition, epoch, to, notes: '"notes"' }], becomes: 'owner' })
  const released = (partitions: readonly number[], busy: readonly number[] = []): ReleasedPartitions => ({
    notes: new Map(partitions.map((partition) => [partition, { from: partition }])),
    busy,
  })

  it('takes no partition that its new owner has given on before its notes were read', async () => {
    const other = await join('other')
    const epoch = holdings.epochOf(0)
    await handOver.balance(1, other)
    expect(await giveTo(other, me, 0, epoch + 1)).toEqual([0])
    beforeRun = async (operation) => {
      if (operation === partitionRows.notes.name) await giveTo(me, other, 0, epoch + 2)
    }
    await look()
    expect([holdings.has(0), holder.held.has(0), await ownedBy(other)]).toEqual([false, false, [0]])
  })

  it('reclaims in a new epoch what it gave away with an unknown outcome', async () => {
    const other = await join('other')
    const epoch = holdings.epochOf(0)
    beforeRun = async (operation) => {
      if (operation === partitionRows.give.name) throw new HomeportError('store_outcome_unknown', {})
    }
    holder.busy.add(1)
    await handOver.balance(2, other)
    // It acts on the busy partition only, because the other may have a new owner.
    expect([holdings.owns(0), holder.held.has(0), holdings.owns(1)]).toEqual([false, false, true])
    beforeRun = async () => undefined
    await look()
    expect([holdings.owns(0), holder.held.has(0), holdings.epochOf(0)]).toEqual([true, true, epoch + 1])
    expect((await rows()).partitions[0]).toMatchObject({ owner: me, epoch: epoch + 1 })
  })

  it('gains nothing after its node was declared dead', async () => {
    holdings.lose(ALL)
    isOver = true
    handOver.gain(ALL.map((partition) => ({ partition, epoch: holdings.epochOf(partition) + 1 })))
    expect([holdings.all, [...holder.held]]).toEqual([[], []])
  })

  it('balances with other partitions when the first have requests in flight', async () => {
    const other = await join('other')
    for (const partition of [0, 1]) holder.busy.add(partition)
    await handOver.balance(2, other)
    expect([await ownedBy(other), holdings.owned, holder.held.get(0)]).toEqual([[], ALL, { from: 0 }])
    nowMs += 999
    await handOver.balance(2, other)
    expect(await ownedBy(other)).toEqual([])
    nowMs += 1
    await handOver.balance(2, other)
    expect(await ownedBy(other)).toEqual([2, 3])
    expect(asked).toEqual([
      [2, 3].map((partition) => ({ partition, epoch: holdings.epochOf(partition), notes: { from: partition } })),
    ])
  })

  it('keeps partitions that their holder could not release', async () => {
    const other = await join('other')
    holder.release = () => Promise.reject(new Error('a defect'))
    await handOver.balance(2, other)
    expect([await ownedBy(other), holdings.owned]).toEqual([[], ALL])
  })

  it('keeps partitions whose new owner is gone', async () => {
    const other = await join('other')
    await store.run(nodeRows.leave, { incarnation: other })
    await handOver.balance(2, other)
    expect([await ownedBy(other), holdings.owned, asked]).toEqual([[], ALL, []])
  })

  it('of a drain ends when the heirs have confirmed, and wakes heirs that do not answer', async () => {
    const [other, silent] = [await join('other'), await join('silent')]
    answering.delete(silent)
    let isConfirmed = false
    onAsked = async () => {
      await yieldToEventLoop()
      isConfirmed = true
    }
    const given: number[] = []
    onGiven = (partitions) => given.push(partitions)
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: undefined })
    expect([isConfirmed, woken, given]).toEqual([true, [silent], [PARTITIONS]])
    expect([(await ownedBy(other)).length, (await ownedBy(silent)).length]).toEqual([32, 32])
  })

  it.each([
    ['gives up its partitions', PARTITIONS],
    ['has none', 0],
  ])('of a drain also gives up the leadership and its part, when the node %s', async (_, count) => {
    await join('other')
    await handOver.balance(PARTITIONS - count, [...answering].at(-1) ?? 0)
    await store.run(partitionRows.lead, { incarnation: me })
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: undefined })
    const { leader, nodes } = await rows()
    expect([leader, nodes.find(({ incarnation }) => incarnation === me)?.state]).toEqual([null, 'draining'])
  })

  it('of a drain also gives what a balance had chosen and then kept', async () => {
    const other = await join('other')
    let keep = (_: ReleasedPartitions): void => undefined
    const balanced = new Promise<ReleasedPartitions>((resolve) => (keep = resolve))
    holder.release = (partitions) => (partitions.includes(0) ? balanced : Promise.resolve(released(partitions)))
    const balance = handOver.balance(1, other)
    beforeRun = async (operation) => {
      if (operation !== partitionRows.give.name) return
      holder.release = async (partitions) => released(partitions)
      keep(released([0], [0]))
      await balance
    }
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: undefined })
    expect(await ownedBy(other)).toEqual(ALL)
  })

  it('of a drain waits for each partition when the holder could not release them together', async () => {
    const other = await join('other')
    const alone: number[] = []
    holder.release = async (partitions) => {
      if (partitions.length > 1) throw new Error('a defect')
      alone.push(...partitions)
      return released(partitions)
    }
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: undefined })
    expect([alone, await ownedBy(other)]).toEqual([ALL, ALL])
  })

  it('of a drain finds other heirs than the nodes that it knows', async () => {
    const gone = await join('gone')
    const known = await rows()
    await store.run(nodeRows.leave, { incarnation: gone })
    const other = await join('other')
    await handOver.drain({ graceMs: 1_000, becomes: 'resigned', known })
    expect([await ownedBy(other), holdings.all]).toEqual([ALL, []])
    expect(nowMs).toBeLessThan(100)
  })

  it('of a drain finds an heir that has opened since the last look', async () => {
    const known = await rows()
    const other = await join('other')
    await handOver.drain({ graceMs: 1_000, becomes: 'resigned', known })
    expect(await ownedBy(other)).toEqual(ALL)
  })

  it('of a drain without an heir ends at once, and gives its partitions to a node that comes later', async () => {
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: undefined })
    expect([nowMs, await ownedBy(me), holdings.owned]).toEqual([0, ALL, []])
    const other = await join('other')
    await handOver.giveRest(await rows())
    expect(await ownedBy(other)).toEqual(ALL)
  })

  it('of a drain gives the notes of the moment at which a partition became quiet', async () => {
    const other = await join('other')
    for (const partition of [1, 2]) holder.busy.add(partition)
    const again: number[] = []
    holder.release = async (partitions, graceMs) => {
      if (partitions.length > 1) return released(partitions, [1, 2])
      again.push(...partitions, graceMs)
      return { notes: new Map(partitions.includes(1) ? [[1, 'later']] : []), busy: [] }
    }
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: undefined })
    expect(again).toEqual([1, 1_000, 2, 1_000])
    const notes = await store.run(partitionRows.notes, { partitions: [0, 1, 2] })
    expect(notes.map((row) => row.notes)).toEqual(['{"from":0}', '"later"', null])
    expect(await ownedBy(other)).toEqual(ALL)
  })

  it('of a drain leaves busy partitions alone until it ends, and ends when their holder does not answer', async () => {
    // An earlier drain, for the operator, has found no heir.
    await handOver.drain({ graceMs: 1_000, becomes: 'resigned', known: undefined })
    holdings.keep(ALL, new Map())
    const other = await join('other')
    holder.release = (partitions) => (partitions.length > 1 ? Promise.resolve(released(partitions, [5])) : stuck)
    const stuck = new Promise<ReleasedPartitions>(() => undefined)
    let rest: Promise<void> | undefined
    const view = await rows()
    beforeRun = async () => {
      rest ??= handOver.giveRest(view)
    }
    await handOver.drain({ graceMs: 1_000, becomes: 'draining', known: view })
    await rest
    expect([await ownedBy(me), nowMs]).toEqual([[5], 2_010])
    await handOver.giveRest(await rows())
    expect(await ownedBy(other)).toEqual(ALL)
  })
})
