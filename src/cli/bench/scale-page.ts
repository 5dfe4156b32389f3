import { figure } from '../terminal/figures.js'
import {
  CLUSTER_COSTS,
  COSTS,
  predict,
  predictCluster,
  STORED_BYTES,
  WORKLOADS,
  type Work,
  type Workload,
} from './model.js'
import { UNITS } from './report.js'

/** A durable write on the reference machine, microseconds. */
const REFERENCE_SYNC_US = 250
/** The machines of the table: the first one runs the callers too. */
const MACHINES = [
  { title: '2 cores, with the callers', cores: 2, sharesCores: true },
  { title: '4 cores', cores: 4, sharesCores: false },
  { title: '16 cores', cores: 16, sharesCores: false },
  { title: '64 cores', cores: 64, sharesCores: false },
] as const
/** Enough callers to put full load on a server. */
const MANY_CALLERS = 1_000
const NODES = [3, 10] as const
const POSTGRES_CORES = [4, 16] as const

const INTRODUCTION = `# Scale

How much load a server carries, which resource limits it, and how to measure your own server. The figures come from a
cost model, whose constants are measured. This page is generated from \`src/cli/bench/model.ts\` by \`npm run docs\`.

## Measure your own server

\`\`\`sh
homeport bench
homeport bench --only publish,steps --callers 200 --seconds 30
homeport bench --profile prod --receiver 192.168.1.20
\`\`\`

\`homeport bench\` puts load on a running server and prints its throughput per second and the latency of an operation
(median, 99th percentile, maximum). Then it removes what it created: messages, runs and a database. Other work on the
server gets slower meanwhile. With SQLite on the same machine it measures the speed of a core and a durable write first, and prints
what the model predicts for that machine.

## The model

An operation costs processor time of the server's main thread, of its other threads and engines, and of its caller, and it
waits for commits. Alone, it takes the time of the main thread and of the caller and its commits, one after the other.
Each further caller adds what an operation needs of the busiest resource: the main thread, which is one core, or all cores
together. Callers that come together share wake-ups, system calls and commits, so an operation costs less in a busy server.

Microseconds for an operation on the reference machine (two shared cores in a data centre, a durable write takes
${REFERENCE_SYNC_US} µs), with 64 bytes and without pipelines:
`

const DIFFERENCES = `
The model leaves out queueing that is not at the bottleneck, garbage collections and what the system needs to switch
between processes. \`npm run bench scale\` measures the constants and prints predictions beside measurements;
[bench/RESULTS.md](../bench/RESULTS.md) has what the other benchmarks measured, beside comparable products.

## One server on SQLite

Operations per second at full load, and the resource that limits them:
`

const BOUNDS = `
A server has one main thread, so more than four cores do not help it; faster ones do. Engines are processes of their
own, so slow commands and large databases use further cores, but every command passes through the main thread. Where it
is the limit, use several nodes. A plan also limits the commands per second of one database:
[limits](limits.md).

Disk: an operation adds this many bytes to the SQLite file until [retention](configuration.md#retentionms) deletes it. Larger bodies,
headers and results add their size.
`

const CLUSTER = `
## Several nodes on PostgreSQL

Queue and workflow work is divided between nodes by partitions, so the capacity of their main threads adds up, until
PostgreSQL is the limit. Microseconds for an operation, and the predicted operations per second of a cluster:
`

const CLUSTER_LIMITS = `
These figures are calculated from one node, not measured on ten. They assume that PostgreSQL scales with its cores and
that its disk takes the log; a commit of many callers is one write. Databases are spread over the nodes and do not use
PostgreSQL for commands: their rates add up with the nodes.
`

/** The page `docs/scale.md`. */
export function scalePage(): string {
  return [
    INTRODUCTION,
    costTable(),
    DIFFERENCES,
    machineTable(),
    BOUNDS,
    diskTable(),
    CLUSTER,
    clusterTable(),
    CLUSTER_LIMITS,
  ].join('\n')
}

const rowOf = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`

const table = (titles: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [titles, titles.map((_, index) => (index === 0 ? '---' : '---:')), ...rows].map(rowOf).join('\n')

function costTable(): string {
  const cells = ({ mainUs, otherUs, callerUs }: Work): string => `${mainUs} + ${otherUs} + ${callerUs}`
  return table(
    ['operation', 'alone: main thread + others + caller', 'busy', 'commits'],
    WORKLOADS.map((name) => [UNITS[name], cells(COSTS[name].alone), cells(COSTS[name].busy), COSTS[name].commits]),
  )
}

function machineTable(): string {
  const carried = (name: Workload, { cores, sharesCores }: (typeof MACHINES)[number]): string => {
    const machine = { cores, sharesCores, speed: 1, syncUs: REFERENCE_SYNC_US }
    const { perSecond, bound } = predict(COSTS[name], machine, name === 'cancel' ? 1 : MANY_CALLERS)
    return `${rounded(perSecond)} (${bound})`
  }
  return table(
    ['operation', ...MACHINES.map(({ title }) => title)],
    WORKLOADS.map((name) => [UNITS[name], ...MACHINES.map((machine) => carried(name, machine))]),
  )
}

function diskTable(): string {
  const stored = WORKLOADS.flatMap((name) => {
    const bytes = STORED_BYTES[name]
    return bytes === undefined ? [] : [[UNITS[name], figure(bytes)]]
  })
  return table(['operation', 'bytes'], stored)
}

function clusterTable(): string {
  const clusters = NODES.flatMap((nodes) => POSTGRES_CORES.map((cores) => ({ nodes, cores })))
  const titles = clusters.map(({ nodes, cores }) => `${nodes} nodes, ${cores} cores for PostgreSQL`)
  const rows = WORKLOADS.flatMap((name) => {
    const cost = CLUSTER_COSTS[name]
    if (cost === undefined) return []
    const carried = clusters.map(({ nodes, cores }) => {
      const { perSecond, bound } = predictCluster(cost, nodes, cores)
      return `${rounded(perSecond)} (${bound})`
    })
    return [[UNITS[name], cost.nodeMainUs, cost.postgresUs, ...carried]]
  })
  return table(['operation', 'main thread of a node', 'PostgreSQL', ...titles], rows)
}

/** Rounds to two significant digits: the model is not more accurate. */
const rounded = (value: number): string => figure(Number(value.toPrecision(2)))
