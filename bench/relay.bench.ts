/**
 * The cost of the relay between nodes: the same writes to a database without a standby, to one with a standby at the other
 * node, and to a bare engine with a bare replica, in alternating rounds. Measures the processor time of all processes that
 * take part, per MB written, and the time from the answer to a write until the write is in the copy.
 *
 *   npm run bench relay
 *
 * `HOMEPORT_BENCH_ROUNDS` sets the number of rounds, default 5.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'iovalkey'
import type { DatabaseRecord } from '../src/contract/databases/databases.js'
import type { DatabaseStandby } from '../src/contract/server/standbys.js'
import { probeEngine } from '../src/fleet/index.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { atCleanup, cleanup, enginesIn, freePort, tempDir, waitFor } from '../test/support/index.js'
import { median, percentile } from './support/figures.js'
import { type BenchNode, startNodes } from './support/nodes.js'
import { processUs } from './support/process-time.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const REGION = 'us-east-1'
const VALUE = 'x'.repeat(1_000)
const WRITES = 40_000
const PIPELINE = 100
const MARKS = 100
/** Time after which the copy has all writes. */
const SETTLE_MS = 500

/** A primary to write to, with its copy and the processes that work for both. */
interface Contestant {
  readonly name: string
  readonly primary: Redis
  readonly copy: Redis | undefined
  readonly pids: () => readonly number[]
  readonly usPerMb: number[]
  readonly lagMs: number[]
}

type Made = DatabaseRecord & Record<'password', string>

async function create({ homeport }: BenchNode): Promise<Made> {
  const body = { database_name: 'bench', platform: 'aws', primary_region: REGION, plan: 'payg' }
  return (await homeport.api('POST', '/v2/redis/database', body)).body as Made
}

const folderAt = ({ homeport }: BenchNode, { database_id }: Made): string =>
  join(homeport.place.dataDir, 'databases', database_id)

/** The engine of a node for a database, without the data plane. */
function engineOf(node: BenchNode, made: Made): Redis {
  const config = readFileSync(join(folderAt(node, made), REGION, 'engine.conf'), 'utf8')
  return connected({ path: /^unixsocket "?([^"\n]+)"?$/m.exec(config)?.[1] ?? '', password: made.password })
}

function connected(options: { path: string; password?: string } | { host: string; port: number; password?: string }) {
  const client = new Redis({ ...options, enableReadyCheck: false })
  client.on('error', () => undefined)
  atCleanup(() => client.disconnect())
  return client
}

/** Creates a database of the nodes. With a standby, it resolves when the standby follows. */
async function database(nodes: readonly BenchNode[], kind: 'alone' | 'standby'): Promise<Contestant> {
  const [first] = nodes as [BenchNode]
  const made = await create(first)
  const id = made.database_id
  const standby = async () =>
    ((await first.homeport.api('GET', '/v2/node-standbys')).body as DatabaseStandby[]).find(
      (one) => one.database_id === id,
    )
  const home = nodes.find((node) => enginesIn(folderAt(node, made)).length > 0) ?? first
  const other = nodes.find((node) => node !== home) ?? first
  if (kind === 'standby') {
    await first.homeport.api('PUT', `/v2/node-standbys/${id}`)
    await waitFor(async () => (await standby())?.state === 'following', { what: 'the standby to follow' })
  }
  const engines = () => nodes.flatMap((node) => enginesIn(folderAt(node, made)).map(({ pid }) => pid))
  return {
    name: kind === 'alone' ? 'database' : 'database with a standby',
    usPerMb: [],
    lagMs: [],
    primary: connected({ host: home.host, port: made.port, password: made.password }),
    copy: kind === 'standby' ? engineOf(other, made) : undefined,
    pids: () => [...nodes.map(({ homeport }) => homeport.pid), ...engines()],
  }
}

async function bareEngine(binary: string, follows?: number): Promise<{ client: Redis; pid: number; port: number }> {
  const port = await freePort()
  const flags = ['--port', `${port}`, '--dir', tempDir(), '--appendonly', 'yes', '--save', '']
  const engine = spawn(binary, [...flags, ...(follows ? ['--replicaof', `127.0.0.1 ${follows}`] : [])], {
    stdio: 'ignore',
  })
  atCleanup(() => void engine.kill('SIGKILL'))
  return { client: connected({ host: '127.0.0.1', port }), pid: engine.pid ?? 0, port }
}

async function bare(binary: string, kind: 'alone' | 'replica'): Promise<Contestant> {
  const primary = await bareEngine(binary)
  await primary.client.ping()
  const replica = kind === 'replica' ? await bareEngine(binary, primary.port) : undefined
  const isLinked = async () => (await replica?.client.info('replication'))?.includes('master_link_status:up') !== false
  await waitFor(isLinked, { what: 'the replica to follow' })
  return {
    name: kind === 'alone' ? 'bare engine' : 'bare engine with a replica',
    usPerMb: [],
    lagMs: [],
    primary: primary.client,
    copy: replica?.client,
    pids: () => [primary.pid, ...(replica ? [replica.pid] : [])],
  }
}

async function round({ primary, copy, pids, usPerMb, lagMs }: Contestant): Promise<void> {
  const used = () => pids().reduce((sum, pid) => sum + processUs(pid), 0)
  const before = used()
  for (let sent = 0; sent < WRITES; sent += PIPELINE) {
    const batch = primary.pipeline()
    for (let each = 0; each < PIPELINE; each++) batch.set(`k${each}`, VALUE)
    await batch.exec()
  }
  await pause(SETTLE_MS)
  usPerMb.push((used() - before) / ((WRITES * VALUE.length) / 1_000_000))
  for (let mark = 0; copy && mark < MARKS; mark++) {
    const value = `${Math.random()}`
    await primary.set('mark', value)
    const answered = performance.now()
    while ((await copy.get('mark')) !== value) await pause(0)
    lagMs.push(performance.now() - answered)
  }
}

const postgres = await startPostgresServer()
atCleanup(() => postgres.stop())
const nodes = await startNodes(`${postgres.url}/postgres`, [REGION, REGION])
const { binary } = await probeEngine()
const contestants = [
  await bare(binary, 'alone'),
  await bare(binary, 'replica'),
  await database(nodes, 'alone'),
  await database(nodes, 'standby'),
]
for (let done = 0; done < ROUNDS; done++) for (const one of contestants) await round(one)
for (const { name, usPerMb, lagMs } of contestants) {
  const range = `${Math.min(...usPerMb).toFixed(0)} to ${Math.max(...usPerMb).toFixed(0)}`
  const lag =
    lagMs.length === 0
      ? ''
      : `; in the copy after p50 ${median(lagMs).toFixed(2)} ms, p99 ${percentile(lagMs, 0.99).toFixed(2)} ms`
  console.log(`${name}: ${median(usPerMb).toFixed(0)} µs of processor time for a MB (${range})${lag}`)
}
await cleanup()
