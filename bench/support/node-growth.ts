/** The gain and the cost of a further node: the cases `join` and `growth` of the benchmark `takeover`. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { NodeScene } from '../../test/crash/nodes.js'
import { connectToPostgres } from '../../test/crash/queue-ledger-store.js'
import { waitFor } from '../../test/support/index.js'
import { NodeLoad, type Sent } from './node-load.js'
import { processUs } from './process-time.js'

const PARTITIONS = 64
const WARM_UP_MS = 5_000
const MEASURED_MS = 20_000
const CALLERS = 50

const start = (nodes: number): Promise<NodeScene> =>
  NodeScene.start({ random: Math.random, nodes, onDisturbance: () => undefined })

const percentile = (values: readonly number[], part: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0

/** Partitions of each node that has any. */
async function shares(scene: NodeScene): Promise<readonly number[]> {
  const client = await connectToPostgres(scene.storeUrl)
  const { rows } = await client.query(
    'SELECT count(*)::int AS n FROM partitions WHERE owner IS NOT NULL GROUP BY owner',
  )
  await client.end()
  return rows.map(({ n }) => n)
}

const isBalanced = (counts: readonly number[], nodes: number): boolean =>
  counts.length === nodes &&
  counts.reduce((sum, count) => sum + count, 0) === PARTITIONS &&
  Math.max(...counts) - Math.min(...counts) <= 1

const untilBalanced = (scene: NodeScene): Promise<unknown> =>
  waitFor(async () => isBalanced(await shares(scene), scene.nodes.length), { what: 'balance', deadlineMs: 60_000 })

function delays(messages: Iterable<Sent>): { publish: readonly number[]; delivery: readonly number[]; lost: number } {
  const all = [...messages]
  const there = all.filter(({ arrivals }) => arrivals > 0)
  const delivery = there.map(({ firstAt, acceptedAt }) => Math.max(0, firstAt - acceptedAt))
  return { publish: all.map(({ publishMs }) => publishMs), delivery, lost: all.length - there.length }
}

/** A third node joins two busy ones. Goals: balanced within 10 s; p99 of publishes and deliveries below 2 x that before. */
export async function measureJoin(rate: number): Promise<void> {
  const scene = await start(2)
  const load = await NodeLoad.start(scene)
  load.publishAt(rate)
  await untilBalanced(scene)
  await pause(WARM_UP_MS)
  const p99 = async (): Promise<{ publish: number; delivery: number; lost: number }> => {
    await pause(1_000)
    const { publish, delivery, lost } = delays(load.messages.values())
    return { publish: percentile(publish, 0.99), delivery: percentile(delivery, 0.99), lost }
  }
  load.forget()
  await pause(MEASURED_MS / 2)
  const before = await p99()
  load.forget()
  const beganAt = performance.now()
  const joining = scene.add()
  await joining
  const readyMs = performance.now() - beganAt
  await untilBalanced(scene)
  const balancedMs = performance.now() - beganAt - readyMs
  await pause(2_000)
  const { again, failed } = load
  await load.pause()
  const during = await p99()
  const times = (after: number, first: number): string => `${after.toFixed(0)} ms (${(after / first).toFixed(2)} x)`
  console.log(
    `join: ready after ${(readyMs / 1_000).toFixed(1)} s, balanced ${(balancedMs / 1_000).toFixed(1)} s later; p99 of publish ${before.publish.toFixed(0)} -> ${times(during.publish, before.publish)}, of delivery ${before.delivery.toFixed(0)} -> ${times(during.delivery, before.delivery)}; ${during.lost} lost, ${again.length} sent again, ${failed} publishes failed`,
  )
  await load.close()
  await scene.stop()
}

const cpuOf = (scene: NodeScene): number => scene.nodes.reduce((sum, { homeport }) => sum + processUs(homeport.pid), 0)

/** Processor time of the nodes for each message published and delivered, microseconds. */
async function cpuPerMessage(nodes: number, ratePerNode: number): Promise<number> {
  const scene = await start(nodes)
  const load = await NodeLoad.start(scene)
  await untilBalanced(scene)
  load.publishAt(ratePerNode * nodes)
  await pause(WARM_UP_MS)
  load.forget()
  const before = cpuOf(scene)
  await pause(MEASURED_MS)
  const used = cpuOf(scene) - before
  const count = load.messages.size
  await load.close()
  await scene.stop()
  return used / count
}

/** Messages a second that a number of nodes accept, each limited to half of the second core. */
async function boundThroughput(nodes: number): Promise<number> {
  const scene = await start(nodes)
  const free = scene.nodes.map(({ homeport }, index) => halfACore(homeport.pid, index))
  const postmaster = readFileSync(join(scene.server.files.data, 'postmaster.pid'), 'utf8').split('\n')[0] ?? ''
  for (const pid of [postmaster, String(process.pid)]) bind(pid, 0)
  try {
    const load = await NodeLoad.start(scene)
    await untilBalanced(scene)
    load.publishBy(CALLERS)
    await pause(WARM_UP_MS)
    load.forget()
    await pause(MEASURED_MS)
    const rate = [...load.messages.values()].filter(({ arrivals }) => arrivals > 0).length / (MEASURED_MS / 1_000)
    await load.close()
    return rate
  } finally {
    for (const undo of free) undo()
    await scene.stop()
  }
}

const bind = (pid: string, core: number): void => {
  execFileSync('taskset', ['-a', '-p', '-c', String(core), pid], { stdio: 'ignore' })
}

/** Limits a process to half of the second core. @returns a function that removes the control group after its end. */
function halfACore(pid: number, index: number): () => void {
  const isFirstVersion = existsSync('/sys/fs/cgroup/cpu/cpu.cfs_quota_us')
  const folder = `/sys/fs/cgroup/${isFirstVersion ? 'cpu/' : ''}homeport-bench-${process.pid}-${index}`
  mkdirSync(folder)
  if (isFirstVersion) writeFileSync(`${folder}/cpu.cfs_quota_us`, '50000')
  else writeFileSync(`${folder}/cpu.max`, '50000 100000')
  writeFileSync(`${folder}/cgroup.procs`, String(pid))
  bind(String(pid), 1)
  return () => {
    writeFileSync(`/sys/fs/cgroup/${isFirstVersion ? 'cpu/' : ''}cgroup.procs`, String(pid))
    rmdirSync(folder)
  }
}

const median = (values: readonly number[]): number => percentile(values, 0.5)

/** Two nodes against one of the same cluster. Goals: processor time for a message at most 1.1 x; throughput 1.8 x. */
export async function measureGrowth(ratePerNode: number, rounds: number): Promise<void> {
  const costs: [number, number][] = []
  for (let round = 0; round < rounds; round++) {
    costs.push([await cpuPerMessage(1, ratePerNode), await cpuPerMessage(2, ratePerNode)])
  }
  const [one, two] = [median(costs.map(([first]) => first)), median(costs.map(([, second]) => second))]
  console.log(
    `growth: processor time of the nodes for each message, ${ratePerNode}/s for each node: one ${one.toFixed(0)} µs, two ${two.toFixed(0)} µs (${(two / one).toFixed(2)} x)`,
  )
  const rates: [number, number][] = []
  for (let round = 0; round < rounds; round++) rates.push([await boundThroughput(1), await boundThroughput(2)])
  const [alone, both] = [median(rates.map(([first]) => first)), median(rates.map(([, second]) => second))]
  console.log(
    `growth: each node bound to half a core by a control group, PostgreSQL and the load on the other core: one ${alone.toFixed(0)}/s, two ${both.toFixed(0)}/s (${(both / alone).toFixed(2)} x)`,
  )
}
