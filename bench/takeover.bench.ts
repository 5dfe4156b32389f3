/**
 * The effect on messages of a fault of one of three nodes: the time from acceptance to arrival of each message, while
 * clients publish 500 a second through all nodes.
 *
 * - kill: SIGKILL, and a restart. Goal: nothing lost; delay p99 below 8 s, longest below 10 s.
 * - pause: SIGSTOP for 20 s, SIGCONT. Goal: nothing lost, and no request of the node after others have declared it dead.
 * - drain: SIGTERM, and a restart. Goal: below 1 s, no error, nothing sent twice.
 *
 * - join: a third node joins two. Goal: balanced within 10 s, p99 of the others below 2 x.
 * - growth: two nodes against one. Goal: processor time for a message at most 1.1 x; with half a core each, 1.8 x the messages.
 *
 *   npm run bench takeover
 *
 * `HOMEPORT_BENCH_CYCLES` sets how often each fault happens, default 5; `HOMEPORT_BENCH_FAULTS` which ones, by default the
 * first three; `HOMEPORT_BENCH_RATE` the messages a second, with growth for each node.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { NodeFault } from '../test/crash/node-faults.js'
import { isRunning, NodeScene, type SceneNode } from '../test/crash/nodes.js'
import { cleanup, waitFor } from '../test/support/index.js'
import { measureGrowth, measureJoin } from './support/node-growth.js'
import { NodeLoad } from './support/node-load.js'

const CYCLES = Number(process.env.HOMEPORT_BENCH_CYCLES ?? 5)
const RATE = Number(process.env.HOMEPORT_BENCH_RATE ?? 500)
const CASES = (process.env.HOMEPORT_BENCH_FAULTS ?? 'kill,pause,drain').split(',')
const FAULTS = CASES.filter((each): each is NodeFault => each !== 'join' && each !== 'growth')
const PAUSE_MS = 20_000

async function happen(fault: NodeFault, node: SceneNode, scene: NodeScene): Promise<number> {
  const startedAt = performance.now()
  if (fault === 'pause') {
    process.kill(node.homeport.pid, 'SIGSTOP')
    node.isReady = false
    await pause(PAUSE_MS)
    process.kill(node.homeport.pid, 'SIGCONT')
    const continuedAt = performance.now()
    // The other nodes declared it dead, so it ends by itself. The benchmark restarts it, as a supervisor would.
    const { pid } = node.homeport
    await waitFor(() => !isRunning(pid), { what: `${node.name} to end by itself`, deadlineMs: 30_000 })
    node.homeport = await scene.restart(node)
    return continuedAt
  }
  node.isReady = false
  if (fault === 'drain') {
    await node.homeport.kill('SIGTERM')
    drains.push(performance.now() - startedAt)
  } else await node.homeport.kill('SIGKILL')
  await pause(10_000)
  node.homeport = await scene.restart(node)
  return performance.now()
}

const drains: number[] = []
const at = (sorted: readonly number[], part: number): string =>
  `${((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) / 1_000).toFixed(2)} s`

if (CASES.includes('join')) await measureJoin(RATE)
if (CASES.includes('growth')) await measureGrowth(RATE, CYCLES)
if (FAULTS.length > 0) await measureFaults()
await cleanup()

async function measureFaults(): Promise<void> {
  const scene = await NodeScene.start({ random: Math.random, nodes: 3, onDisturbance: () => undefined })
  const load = await NodeLoad.start(scene)
  load.publishAt(RATE)
  await pause(5_000)
  for (const fault of FAULTS) await measureFault(fault, scene, load)
  await load.close()
  await scene.stop()
}

async function measureFault(fault: NodeFault, scene: NodeScene, load: NodeLoad): Promise<void> {
  const { messages, again } = load
  load.forget()
  let afterReturn = 0
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const node = scene.nodes[cycle % scene.nodes.length]
    if (!node) continue
    const returnedAt = await happen(fault, node, scene)
    await waitFor(() => scene.nodes.every(({ isReady }) => isReady), { what: 'every node', deadlineMs: 60_000 })
    await pause(3_000)
    afterReturn += again.filter((each) => each.at > returnedAt).length
  }
  const accepted = new Map(messages)
  const publishesFailed = load.failed
  const isThere = () => [...accepted.values()].every(({ arrivals }) => arrivals > 0)
  await waitFor(isThere, { what: 'every message', deadlineMs: 30_000, everyMs: 100 }).catch(() => undefined)
  const lost = [...accepted.values()].filter(({ arrivals }) => arrivals === 0).length
  const delays = [...accepted.values()].flatMap((sent) => (sent.arrivals > 0 ? [sent.firstAt - sent.acceptedAt] : []))
  delays.sort((a, b) => a - b)
  const late = delays.filter((ms) => ms > 1_000)
  console.log(
    `${fault}, ${CYCLES} times: ${accepted.size} accepted, ${lost} lost, ${again.length} sent again (${afterReturn} after the node's return), ${publishesFailed} publishes failed`,
  )
  console.log(
    `  delay p50 ${at(delays, 0.5)}, p99 ${at(delays, 0.99)}, longest ${at(delays, 1)}; of the ${late.length} later than 1 s: p50 ${at(late, 0.5)}, p99 ${at(late, 0.99)}`,
  )
  const { known, dead } = load.senders
  const requestsOfDead = load.senders.sentWhenDead()
  console.log(
    `  nodes declared dead so far: ${dead} of ${known}; requests of these after that: ${requestsOfDead.join('; ') || 'none'}`,
  )
  if (fault === 'drain') console.log(`  from SIGTERM to the end: ${drains.map((ms) => Math.round(ms)).join(', ')} ms`)
}
