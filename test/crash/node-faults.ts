import { writeFileSync } from 'node:fs'
import { pause, systemClock } from '../../src/base/index.js'
import type { CuttableProxy } from '../../src/store/testing/cuttable-proxy.js'
import { startStandby } from '../../src/store/testing/postgres-standby.js'
import { waitFor } from '../support/index.js'
import type { NodeScene, SceneNode } from './nodes.js'

/** What can happen to a node, or to what it is connected to. */
export const NODE_FAULTS = [
  'kill',
  'pause',
  'long-pause',
  'cut from PostgreSQL',
  'cut from the others',
  'lost commits',
  'restart of PostgreSQL',
  'drain',
  // Connections stay open, and nothing passes, or requests pass and answers do not.
  'blackhole-store',
  'one-way-store',
  // No node reaches another one, or nobody gets answers of one node.
  'blackhole-peer',
  'one-way-peer',
  'clock-start',
  'clock-jump',
  // A standby of PostgreSQL becomes the primary; the old primary ends, or freezes with its connections open.
  'failover',
  'frozen-failover',
  // PostgreSQL is away for a minute.
  'frozen-store',
  'stopped-store',
] as const

/** A fault. */
export type NodeFault = (typeof NODE_FAULTS)[number]

/** What a fault works with. */
export interface FaultScene {
  readonly scene: NodeScene
  readonly random: () => number
  /** Resolves when every client has had another success. */
  readonly during: () => Promise<void>
}

/** Lengths of a pause and of a cut: shorter than a node may be silent, longer, and much longer. */
const LENGTHS_MS = [2_000, 6_000, 20_000]
const LONG_MS = [6_000, 20_000]
const LONG_PAUSE_MS = 20_000
const AWAY_MS = 60_000
const MAX_LOST = 12
/** Clocks that differ more than 2 s from that of PostgreSQL are refused at the start. */
const JUMP_MS = 30_000
const SMALL_SHIFT_MS = 1_500

/** Causes a fault; resolves when it is over, perhaps before every node is ready again. */
export async function happen(fault: NodeFault, node: SceneNode, by: FaultScene): Promise<void> {
  const { scene, during } = by
  switch (fault) {
    case 'kill':
      return restart(node, 'SIGKILL', by)
    case 'drain':
      return restart(node, 'SIGTERM', by)
    case 'pause':
      return stopFor(LENGTHS_MS, node, by)
    case 'long-pause':
      return stopFor([LONG_PAUSE_MS], node, by)
    case 'cut from PostgreSQL':
      return cut(node.toPostgres, by)
    case 'cut from the others':
      return cut(node.fromPeers, by)
    case 'blackhole-store':
      return swallow([node.toPostgres], 'everything', by)
    case 'one-way-store':
      return swallow([node.toPostgres], 'answers', by)
    case 'blackhole-peer':
      return swallow(peerCables(scene), 'everything', by)
    case 'one-way-peer':
      return swallow([node.fromPeers], 'answers', by)
    case 'clock-start':
      return startWithWrongClock(node, by)
    case 'clock-jump':
      shiftClock(node, by.random() < 0.5 ? JUMP_MS : -JUMP_MS)
      await last(LONG_MS, by)
      shiftClock(node, 0)
      return during()
    case 'lost commits':
      return loseCommits(node, by)
    case 'restart of PostgreSQL':
      return scene.server.restartImmediately()
    case 'failover':
    case 'frozen-failover':
      return failOver(fault === 'frozen-failover', scene)
    case 'frozen-store':
      return away(scene, async () => scene.server.pause())
    case 'stopped-store':
      return away(scene, () => scene.server.halt())
  }
}

const peerCables = ({ nodes }: NodeScene): CuttableProxy[] => nodes.map(({ fromPeers }) => fromPeers)

/** A fault lasts for a time; a long one also until every client has had a success while it lasted. */
async function last(lengthsMs: readonly number[], { random, during }: FaultScene): Promise<void> {
  const ms = lengthsMs[Math.floor(random() * lengthsMs.length)] ?? 0
  await Promise.all([pause(systemClock, ms), LONG_MS.includes(ms) && during()])
}

async function stopFor(lengthsMs: readonly number[], { homeport }: SceneNode, by: FaultScene): Promise<void> {
  process.kill(homeport.pid, 'SIGSTOP')
  try {
    await last(lengthsMs, by)
  } finally {
    // Also after a failure: a stopped process would not end.
    process.kill(homeport.pid, 'SIGCONT')
  }
}

async function restart(node: SceneNode, signal: 'SIGKILL' | 'SIGTERM', { scene, during }: FaultScene): Promise<void> {
  await node.homeport.kill(signal)
  await during()
  node.homeport = await scene.restart(node)
}

async function cut(proxy: CuttableProxy, by: FaultScene): Promise<void> {
  proxy.cut()
  await last(LENGTHS_MS, by)
  proxy.mend()
}

async function swallow(
  proxies: readonly CuttableProxy[],
  what: 'everything' | 'answers',
  by: FaultScene,
): Promise<void> {
  for (const proxy of proxies) proxy.swallow(what)
  await last(LONG_MS, by)
  for (const proxy of proxies) proxy.mend()
}

const shiftClock = ({ clockFile }: SceneNode, ms: number): void => writeFileSync(clockFile, String(ms))

/** A clock that is far off is refused, with the reason; one that is a little off is not. */
async function startWithWrongClock(node: SceneNode, { scene, random, during }: FaultScene): Promise<void> {
  const sign = random() < 0.5 ? 1 : -1
  await node.homeport.kill('SIGTERM')
  shiftClock(node, sign * JUMP_MS)
  const refused = await scene.restart(node).then(
    () => 'it started',
    (error: Error) => error.message,
  )
  if (!/clock of PostgreSQL/.test(refused)) throw new Error(`a clock that is ${sign * 30} s off: ${refused}`)
  shiftClock(node, sign * SMALL_SHIFT_MS)
  node.homeport = await scene.restart(node)
  await during()
  await node.homeport.kill('SIGTERM')
  shiftClock(node, 0)
  node.homeport = await scene.restart(node)
}

async function loseCommits(node: SceneNode, { scene, random, during }: FaultScene): Promise<void> {
  const most = 1 + Math.floor(random() * MAX_LOST)
  let lost = 0
  node.toPostgres.loseCommits(() => {
    if (lost >= most || random() < 0.8) return false
    lost++
    scene.lostCommits++
    return true
  })
  await waitFor(() => lost > 0, { what: 'the first lost commit' })
  await during()
  node.toPostgres.loseCommits(() => false)
}

/** Every node reaches the new primary under the old address, as behind a virtual IP. */
async function failOver(isFrozen: boolean, scene: NodeScene): Promise<void> {
  const before = scene.server
  const standby = await startStandby(before)
  if (isFrozen) before.pause()
  for (const { toPostgres } of scene.nodes) {
    toPostgres.leadTo(standby.port)
    // Connections to the frozen primary stay open and lead nowhere from now on.
    if (isFrozen) toPostgres.abandon()
    else toPostgres.cut()
  }
  scene.server = standby
  if (!isFrozen) await before.stop()
  await standby.promote()
  for (const { toPostgres } of scene.nodes) toPostgres.mend()
  if (isFrozen) await before.stop()
}

/** Takes PostgreSQL away for a minute. No node may be declared dead, and the same processes must continue. */
async function away(scene: NodeScene, begin: () => Promise<() => unknown>): Promise<void> {
  const before = { pids: [...scene.pids], dead: await scene.deadNodes() }
  const end = await begin()
  await pause(systemClock, AWAY_MS)
  await end()
  await waitFor(() => scene.nodes.every(({ isReady }) => isReady), { what: 'every node', deadlineMs: 60_000 })
  const after = { pids: [...scene.pids], dead: await scene.deadNodes() }
  if (JSON.stringify(after) !== JSON.stringify(before)) {
    throw new Error(`before: ${JSON.stringify(before)}; after PostgreSQL was away: ${JSON.stringify(after)}`)
  }
}
