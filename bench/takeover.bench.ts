/**
 * What a fault of one of three nodes does to messages: how long after its acceptance each message arrives, while clients
 * publish 500 a second through all nodes.
 *
 * - kill: SIGKILL, and a start again. Goal: nothing lost; delay p99 below 8 s, longest below 10 s.
 * - pause: SIGSTOP for 20 s, SIGCONT. Goal: nothing lost, and nothing that had arrived is sent after SIGCONT.
 * - drain: SIGTERM, and a start again. Goal: below 1 s, no error, nothing sent twice.
 *
 *   npm run bench takeover
 *
 * `HOMEPORT_BENCH_CYCLES` sets how often each fault happens, default 5; `HOMEPORT_BENCH_FAULTS` which ones;
 * `HOMEPORT_BENCH_RATE` the messages a second.
 */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { NodeFault } from '../test/crash/node-faults.js'
import { NodeScene, type SceneNode } from '../test/crash/nodes.js'
import { cleanup, waitFor } from '../test/support/index.js'

const CYCLES = Number(process.env.HOMEPORT_BENCH_CYCLES ?? 5)
const RATE = Number(process.env.HOMEPORT_BENCH_RATE ?? 500)
const FAULTS = (process.env.HOMEPORT_BENCH_FAULTS ?? 'kill,pause,drain').split(',') as NodeFault[]
const TICK_MS = 20
const PAUSE_MS = 20_000
/** A destination answers after this time. */
const WORK_MS = 20

interface Sent {
  readonly acceptedAt: number
  arrivals: number
  firstAt: number
}

const messages = new Map<string, Sent>()
/** Arrivals of messages that had arrived before, in order of time. */
const again: { readonly id: string; readonly at: number }[] = []
const early = new Map<string, number>()

function arrive(id: string): void {
  const at = performance.now()
  const sent = messages.get(id)
  if (!sent) return void early.set(id, at)
  if (sent.arrivals++ === 0) sent.firstAt = at
  else again.push({ id, at })
}

const sink = createServer((incoming, outgoing) => {
  incoming.resume().on('end', () => {
    arrive((incoming.url ?? '/').slice(1))
    setTimeout(() => outgoing.end('ok'), WORK_MS)
  })
})
await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
const sinkUrl = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`

const scene = await NodeScene.start({ random: Math.random, nodes: 3, onDisturbance: () => undefined })
const agent = new Agent({ keepAlive: true, maxSockets: 200 })
let made = 0
let failed = 0
let isOver = false

function publish(node: SceneNode): void {
  const id = `m${++made}`
  const headers = { authorization: `Bearer ${scene.balanced.credentials.queueToken}` }
  const options = { method: 'POST', headers, agent, timeout: 30_000 }
  const call = request(`${node.homeport.queueUrl}/v2/publish/${sinkUrl}/${id}`, options, (answer) => {
    answer.resume()
    if (answer.statusCode !== 201 && answer.statusCode !== 200) return void failed++
    const sent = { acceptedAt: performance.now(), arrivals: 0, firstAt: 0 }
    messages.set(id, sent)
    const at = early.get(id)
    if (at !== undefined) Object.assign(sent, { arrivals: 1, firstAt: at })
    early.delete(id)
  })
  call.on('timeout', () => call.destroy())
  call.on('error', () => void failed++)
  call.end()
}

async function publishForever(): Promise<void> {
  const perTick = (RATE * TICK_MS) / 1_000
  for (let due = 0, next = performance.now(); !isOver; next += TICK_MS) {
    const ready = scene.nodes.filter(({ isReady }) => isReady)
    for (due += perTick; due >= 1 && ready.length > 0; due--) {
      const node = ready[made % ready.length]
      if (node) publish(node)
    }
    await pause(Math.max(0, next + TICK_MS - performance.now()))
  }
}

async function happen(fault: NodeFault, node: SceneNode): Promise<number> {
  const startedAt = performance.now()
  if (fault === 'pause') {
    process.kill(node.homeport.pid, 'SIGSTOP')
    node.isReady = false
    await pause(PAUSE_MS)
    process.kill(node.homeport.pid, 'SIGCONT')
    const continuedAt = performance.now()
    // It was declared dead, so it ends; what supervises it starts it again.
    await node.homeport.kill('SIGTERM')
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

const publishing = publishForever()
await pause(5_000)
for (const fault of FAULTS) {
  messages.clear()
  again.length = 0
  failed = 0
  let afterReturn = 0
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const node = scene.nodes[cycle % scene.nodes.length]
    if (!node) continue
    const returnedAt = await happen(fault, node)
    await waitFor(() => scene.nodes.every(({ isReady }) => isReady), { what: 'every node', deadlineMs: 60_000 })
    await pause(3_000)
    afterReturn += again.filter((each) => each.at > returnedAt).length
  }
  const accepted = new Map(messages)
  const publishesFailed = failed
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
  if (fault === 'drain') console.log(`  from SIGTERM to the end: ${drains.map((ms) => Math.round(ms)).join(', ')} ms`)
}
isOver = true
await publishing
agent.destroy()
sink.close()
sink.closeAllConnections()
await scene.stop()
await cleanup()
