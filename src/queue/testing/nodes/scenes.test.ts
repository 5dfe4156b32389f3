import { afterAll, expect, it } from 'vitest'
import { partitionOfKey } from '../../../cluster/index.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import { cancelMessage } from '../../../contract/queue/messages.js'
import { QueueMeter, silentLogger } from '../../../telemetry/index.js'
import { Backlog } from '../../dispatcher/backlog.js'
import { FlowControl } from '../../dispatcher/flow-control.js'
import { backlogLimits } from '../../dispatcher/limits.js'
import { Loader } from '../../dispatcher/loader.js'
import { StoredLimits } from '../../dispatcher/stored-limits.js'
import { DUE } from '../../peer-messages.js'
import * as messages from '../../transactions/messages.js'
import * as messagesSweep from '../../transactions/messages-sweep.js'
import * as census from './census.js'
import { ClusterMemory } from './cluster-memory.js'
import { Effects } from './effects.js'
import { ACCOUNT, KEYS, Ledger, QUEUE, type Tracked } from './ledger.js'
import { Network } from './network.js'
import { Operator } from './operator.js'
import { type Redirect, SimulatedLinks } from './simulated-links.js'
import { SimulatedNode } from './simulated-node.js'
import { type Replace, SimulatedStore } from './simulated-store.js'
import { Process, STARTS_AT_MS, Timeline } from './timeline.js'
import { Traffic } from './traffic.js'

/** Defects that the simulation has found, each replayed as it was found. */

const memory = new ClusterMemory()
afterAll(() => memory.close())

const nothing = (): void => undefined

interface SceneOptions {
  readonly answersAfterMs?: () => number
  readonly replace?: Replace
  readonly redirect?: Redirect
  /** How far the clocks of the nodes are ahead. */
  readonly offsetsMs?: readonly number[]
}

/** Quiet nodes that own all partitions. */
async function scene(names: readonly string[], how: SceneOptions = {}) {
  const { answersAfterMs = () => 50, replace, redirect, offsetsMs = [] } = how
  memory.clear()
  const timeline = new Timeline(1)
  const network = new Network(timeline)
  const links = new SimulatedLinks(timeline, network, redirect)
  const ledger = new Ledger({ timeline, memory })
  const effects = new Effects()
  const replacing = replace && (() => replace)
  const deps = { timeline, memory, network, links, ledger, effects, answersAfterMs, replace: replacing, onEnd: nothing }
  const nodes = names.map((name, index) => new SimulatedNode(name, offsetsMs[index] ?? 0, deps))
  for (const node of nodes) node.start()
  network.isQuiet = true
  const pass = (ms: number) => timeline.run(timeline.now + ms, nothing)
  await pass(10_000)
  /** Clients of one node. */
  const at = (node: SimulatedNode | undefined) => new Traffic({ timeline, ledger, nodes: () => (node ? [node] : []) })
  return { timeline, network, ledger, nodes, pass, at }
}

/** The node that sends the messages of a key, and another one. */
function ownersOf(key: string, nodes: readonly SimulatedNode[]) {
  const partition = partitionOfKey(ACCOUNT, key)
  const owner = nodes.find(({ cluster }) => cluster.owns(partition))
  const other = nodes.find((node) => node !== owner)
  if (!owner || !other) throw new Error('nobody owns the partition')
  return { owner, other }
}

it('counts a request that was aborted by a cancel in the rate of its key', async () => {
  const { timeline, nodes, pass, at } = await scene(['a'], { answersAfterMs: () => 1_000 })
  const clients = at(nodes[0])
  const first = clients.publish({ key: 'paced', hasCallback: false })
  await pass(100)
  expect(first?.starts).toBe(1)
  await nodes[0]?.process.clock.after(
    0,
    () => void nodes[0]?.call(cancelMessage, { params: { messageId: first?.messageId } }),
  )
  await pass(100)
  const others = [1, 2, 3].map(() => clients.publish({ key: 'paced', hasCallback: false }))
  await pass(1_000)
  expect([others.map((other) => other?.starts), timeline.problem]).toEqual([[1, 1, 0], undefined])
})

it('a node reads the limits of keys with every load, because their hint may be lost', async () => {
  const { timeline, network, nodes, pass, at } = await scene(['a'])
  const clients = at(nodes[0])
  for (let count = 0; count < 2; count++) clients.publish({ key: 'both', hasCallback: false, delay: 60 })
  await pass(100)
  const process = new Process(timeline, 'b', 0)
  const store = new SimulatedStore({
    timeline,
    process,
    memory,
    network,
    effects: new Effects(),
    isDeclaredDead: () => false,
  })
  const [flow, { clock }] = [new FlowControl(), process]
  const backlog = new Backlog(backlogLimits(10), flow, () => true)
  const limits = new StoredLimits(store, flow)
  const deps = { store, clock, logger: silentLogger, meter: new QueueMeter(), backlog, limits }
  const partitions = () => [partitionOfKey(ACCOUNT, 'both')]
  const loader = new Loader({ ...deps, partitions, onStrays: nothing, onMessages: nothing, onOver: nothing })
  loader.next(STARTS_AT_MS + timeline.now + 30_000)
  await pass(100)
  const due = STARTS_AT_MS + timeline.now + 61_000
  backlog.due.advance(due)
  expect([backlog.size, backlog.due.take(due)?.message.flowKey, backlog.due.take(due)]).toEqual([2, 'both', undefined])
})

it('a node does not wake itself all the time while it may not act', async () => {
  const { timeline, network, nodes, pass, at } = await scene(['a'], { answersAfterMs: () => 20_000 })
  const clients = at(nodes[0])
  const messages = [3, 5].map((delay) => clients.publish({ hasCallback: false, delay }))
  await pass(100)
  network.isQuiet = false
  network.storeAwayUntil = timeline.now + 60_000
  await pass(10_000)
  // The second message is due when the node may not act any more; the first one has become a slow request by then.
  expect([messages.map((message) => message?.starts), timeline.problem]).toEqual([[1, 0], undefined])
})

it('a node finds a message whose hint was lost after a long time without messages', async () => {
  const { network, nodes, pass, at } = await scene(['a', 'b'])
  const [a, b] = nodes
  if (!a || !b) throw new Error('there are no nodes')
  await pass(120_000)
  network.isQuiet = false
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const)
    network.cutBetween(one.process, other.process, 60_000)
  const owner = a.cluster.owns(partitionOfKey(ACCOUNT, 'side')) ? a : b
  const message = at(owner === a ? b : a).publish({ key: 'side', hasCallback: false })
  await pass(10_000)
  expect(message?.starts).toBeGreaterThan(0)
})

it('a node loads a message whose hint was lost, however often the load fails', async () => {
  let failures = 4
  const { network, nodes, pass, at } = await scene(['a', 'b'], {
    replace: (operation) => {
      if (operation.name === messagesSweep.rows.name && failures-- > 0) throw new HomeportError('store_unavailable', {})
      return operation
    },
  })
  const { owner, other } = ownersOf('side', nodes)
  network.isQuiet = false
  network.cutBetween(other.process, owner.process, 60_000)
  const message = at(other).publish({ key: 'side', hasCallback: false })
  await pass(25_000)
  // The destination may fail once.
  expect([(message?.starts ?? 0) > 0, failures < 0]).toEqual([true, true])
})

it('a node sends a message whose hint was lost before a long outage of the store soon after it', async () => {
  const { timeline, network, nodes, pass, at } = await scene(['a', 'b'])
  const { owner, other } = ownersOf('side', nodes)
  network.isQuiet = false
  network.cutBetween(other.process, owner.process, 60_000)
  const message = at(other).publish({ key: 'side', hasCallback: false })
  await pass(100)
  network.storeAwayUntil = timeline.now + 20_000
  await pass(20_000)
  const startsThen = message?.starts
  await pass(8_000)
  // The destination may fail once.
  expect([message?.isAcknowledged, startsThen, (message?.starts ?? 0) > 0]).toEqual([true, 0, true])
})

it('a node sends nothing of a message whose publication is answered long after its cancel', async () => {
  const { network, ledger, nodes, pass, at } = await scene(['a'])
  const [a] = nodes
  if (!a) throw new Error('there is no node')
  const clients = at(a)
  // The commit takes effect, and the node is notified of it after others have cancelled the message.
  const slow = { kind: 'ok', there: 5, back: 3_000 } as const
  const toStore = network.toStore.bind(network)
  network.toStore = () => slow
  const message = clients.publish({ hasCallback: false })
  await pass(1)
  network.toStore = toStore
  await pass(500)
  const messageId = memory.run(census.messages, {}).find(({ url }) => url.endsWith(`/${message?.label}`))?.message_id
  const cancelled: unknown[] = []
  a.process.clock.after(
    0,
    () => void a.call(cancelMessage, { params: { messageId } }).then((answer) => cancelled.push(answer)),
  )
  await pass(500)
  expect([messageId !== undefined, cancelled.length, ledger.requests]).toEqual([true, 1, 0])
  await pass(5_000)
  expect([message?.isAcknowledged, message?.starts]).toEqual([true, 0])
})

it('a node forwards a misdirected hint with the keys of its messages', async () => {
  // Redirect the hints of one node to another node than the owner.
  let others: readonly unknown[] | undefined
  const { timeline, nodes, pass, at } = await scene(['a', 'b', 'c'], {
    answersAfterMs: () => 1_000,
    redirect: (topic, to, all) => {
      if (topic !== DUE) return to
      others ??= all
      const isOfFirst = all.every((each) => others?.includes(each))
      return (isOfFirst ? all.find((each) => each !== to) : undefined) ?? to
    },
  })
  const { other } = ownersOf('both', nodes)
  const clients = at(other)
  const messages = [1, 2].map(() => clients.publish({ key: 'both', hasCallback: false }))
  await pass(500)
  const starts = messages.map((message) => message?.starts ?? 0)
  expect([starts.reduce((sum, each) => sum + each), timeline.problem]).toEqual([1, undefined])
})

/** Stores a message that was due an hour ago, as the end of a pause does, and sends no hint. */
function storeDueLongAgo({ now }: Timeline): void {
  const created_at = STARTS_AT_MS + now - 3_600_000
  const about = {
    account_id: ACCOUNT,
    kind: 'http',
    method: 'POST',
    headers: '{}',
    config: '{}',
    labels: '',
    body: null,
  }
  const where = { url: 'http://one.test/old', host: 'one.test', path: '/old' }
  memory.run(messages.insert, [
    { ...about, ...where, message_id: 'msg_old', max_retries: 0, created_at, next_at: created_at },
  ])
}

it('a node finds a message that was due long ago and whose hint was lost, as at the end of a pause', async () => {
  const { timeline, ledger, nodes, pass } = await scene(['a', 'b'])
  storeDueLongAgo(timeline)
  await pass(6_000)
  const strays = nodes.reduce((sum, { meter }) => sum + meter.strays, 0)
  expect([ledger.requests, strays]).toEqual([1, 1])
})

it('a node finds no stray while a hint is on its way from a node whose clock is behind', async () => {
  const { network, nodes, pass, at } = await scene(['a', 'b'], { offsetsMs: [900, -900] })
  const [owner, other] = nodes
  if (!owner || !other) throw new Error('there are no nodes')
  const key = Object.keys(KEYS).find((name) => owner.cluster.owns(partitionOfKey(ACCOUNT, name))) ?? ''
  network.toPeer = () => ({ kind: 'ok', there: 300, back: 1 })
  for (let count = 0; count < 20; count++) {
    at(other).publish({ key, hasCallback: false })
    await pass(150)
  }
  await pass(2_000)
  expect([key !== '', owner.meter.strays]).toEqual([true, 0])
})

it('a node sends nothing of a cancelled message that got its turn by another cancel', async () => {
  const { timeline, network, nodes, pass, at } = await scene(['a', 'b'], { answersAfterMs: () => 20_000 })
  const [a, b] = nodes
  if (!a || !b) throw new Error('there are no nodes')
  const clients = at(a)
  const [first, second] = [1, 2].map(() => clients.publish({ queue: QUEUE, hasCallback: false }))
  await pass(200)
  // The other node answers late that it has forgotten the first message.
  network.toPeer = (from) => ({ kind: 'ok', there: from === a.process ? 800 : 2, back: 2 })
  const cancel = (node: SimulatedNode, message: Tracked | undefined) =>
    node.process.clock.after(0, () => {
      const params = { messageId: message?.messageId }
      void node.call(cancelMessage, { params }).then(() => Object.assign(message ?? {}, { isCancelled: true }))
    })
  cancel(a, first)
  await pass(100)
  cancel(b, second)
  await pass(3_000)
  expect([first?.isCancelled, second?.isCancelled, timeline.problem]).toEqual([true, true, undefined])
})

it('the queue sends nothing twice when a node is stopped while it drains for the operator', async () => {
  const { timeline, nodes, pass, at } = await scene(['a', 'b'], { answersAfterMs: () => 4_000 })
  const [a] = nodes
  const message = at(a).publish({ hasCallback: false })
  await pass(100)
  new Operator({ timeline, memory }).drain(['a'])
  await pass(1_500)
  a?.drain()
  await pass(10_000)
  expect([message?.starts, message?.successes, a?.phase]).toEqual([1, 1, 'over'])
})
