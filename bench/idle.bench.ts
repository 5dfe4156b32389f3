/**
 * The cost of unused databases: creates many, eight at a time, and waits until all of them sleep. Then it measures the
 * memory, the processor time and the disk writes of all processes of the server over some time, with all ports open. It
 * also measures the time of a creation: while the number of databases grows and earlier ones are awake or fall asleep, and
 * while all of them sleep, compared with few sleeping databases.
 *
 *   node --import ./scripts/lib/measured.mjs bench/idle.bench.ts [databases = 1000] [seconds = 30]
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { DEFAULT_PLANS } from '../src/contract/databases/plans.js'
import {
  cleanup,
  freePortRange,
  processesMarked,
  type RunningHomeport,
  startHomeport,
  tempDir,
  waitFor,
} from '../test/support/index.js'
import { percentile } from './support/figures.js'

const [count = 1000, seconds = 30] = process.argv
  .slice(2)
  .filter((word) => /^\d+$/.test(word))
  .map(Number)
const AT_A_TIME = 8
const DECILES = 10
/** Databases created while all others sleep: first to warm up, then beside few others, then beside all of them. */
const BESIDE = 100
const IDLE_S = 5
/** Time until pending counts are written and heaps are collected. */
const SETTLE_S = 25
/** Kernel clock ticks per second, the unit of processor time in /proc. */
const TICKS_PER_SECOND = 100
const MIB = 2 ** 20

interface Costs {
  readonly pssBytes: number
  readonly rssBytes: number
  readonly cpuSeconds: number
  readonly writtenBytes: number
}

const numberIn = (text: string, name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1])

function costsOf(pid: number): Costs {
  const of = (file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8')
  const memory = of('smaps_rollup')
  // The fields after the name of the program, which may contain spaces.
  const fields = of('stat')
    .replace(/^.*\) /s, '')
    .split(' ')
  const [userTicks, systemTicks] = [Number(fields[11]), Number(fields[12])]
  return {
    pssBytes: numberIn(memory, 'Pss') * 1024,
    rssBytes: numberIn(memory, 'Rss') * 1024,
    cpuSeconds: (userTicks + systemTicks) / TICKS_PER_SECOND,
    writtenBytes: numberIn(of('io'), 'write_bytes'),
  }
}

/** The server, its launcher, and its engines, whose command line contains their directory. */
function pidsOf(server: RunningHomeport): number[] {
  const launchers = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .map(Number)
  const engines = processesMarked(join(server.place.dataDir, 'databases')).map(({ pid }) => pid)
  return [...new Set([server.pid, ...launchers, ...engines])]
}

function totalOf(server: RunningHomeport): Costs & { readonly processes: number } {
  const all = pidsOf(server).map(costsOf)
  const sum = (field: keyof Costs): number => all.reduce((total, one) => total + one[field], 0)
  return {
    processes: all.length,
    pssBytes: sum('pssBytes'),
    rssBytes: sum('rssBytes'),
    cpuSeconds: sum('cpuSeconds'),
    writtenBytes: sum('writtenBytes'),
  }
}

interface Created {
  readonly elapsedMs: number
  readonly port: number
}

async function create(server: RunningHomeport): Promise<Created> {
  const startedAt = performance.now()
  const fields = { database_name: 'idle', platform: 'aws', primary_region: 'us-east-1', plan: 'payg' }
  const { status, body } = await server.api('POST', '/v2/redis/database', fields)
  if (status !== 200) throw new Error(`creation answered ${status} ${JSON.stringify(body)}`)
  return { elapsedMs: performance.now() - startedAt, port: (body as { port: number }).port }
}

async function createAll(server: RunningHomeport, wanted: number): Promise<Created[]> {
  const made: Created[] = []
  let left = wanted
  const worker = async (): Promise<void> => {
    while (left-- > 0) made.push(await create(server))
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  return made
}

function reportCreations(made: readonly Created[], before: number): void {
  const size = Math.ceil(made.length / DECILES)
  for (let at = 0; at < made.length; at += size) reportTimes(made.slice(at, at + size), before + at)
}

function reportTimes(made: readonly Created[], before: number): void {
  const times = made.map(({ elapsedMs }) => elapsedMs)
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)].map((ms) => ms.toFixed(1).padStart(7))
  const range = `${before + 1} to ${before + times.length}`
  console.log(`create, ${AT_A_TIME} at a time, databases ${range.padEnd(12)} p50 ${p50} ms   p99 ${p99} ms`)
}

/** Creates databases while all existing ones sleep, and prints the processor time of the server for each. */
async function createBeside(server: RunningHomeport, before: number): Promise<void> {
  const { cpuSeconds } = costsOf(server.pid)
  reportTimes(await createAll(server, BESIDE), before)
  const ofEach = (1000 * (costsOf(server.pid).cpuSeconds - cpuSeconds)) / BESIDE
  console.log(`  beside ${before} asleep; ${ofEach.toFixed(1)} ms of computing of the server for each`)
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

try {
  const plansFile = join(tempDir(), 'plans.json')
  writeFileSync(plansFile, JSON.stringify({ payg: { ...DEFAULT_PLANS.payg, db_store_max_idle: IDLE_S * 1e9 } }))
  const { from, to } = await freePortRange(count + 3 * BESIDE)
  const args = ['--log-level', 'silent', '--plans-file', plansFile, '--paid-account-databases', `${count + 3 * BESIDE}`]
  const first = await startHomeport({ redisPorts: `${from}-${to}`, args })
  const empty = totalOf(first)
  console.log(`no database: RSS ${(empty.rssBytes / MIB).toFixed(0)} MB, PSS ${(empty.pssBytes / MIB).toFixed(0)} MB`)
  const asleep = (): boolean => totalOf(first).processes === empty.processes
  const untilAsleep = () => waitFor(asleep, { what: 'every database to sleep', deadlineMs: 120_000, everyMs: 500 })
  await createAll(first, BESIDE)
  await untilAsleep()
  await createBeside(first, BESIDE)
  await untilAsleep()
  reportCreations(await createAll(first, count), 2 * BESIDE)
  await untilAsleep()
  await createBeside(first, count + 2 * BESIDE)
  await untilAsleep()
  await measure('asleep after use', first)
  await first.kill('SIGTERM')
  const again = await startHomeport({ ...first.place, args })
  await measure('after a restart', again)
} finally {
  await cleanup()
}

async function measure(label: string, server: RunningHomeport): Promise<void> {
  const { body } = await server.api('GET', '/v2/redis/databases')
  const records = body as { port: number; state: string }[]
  const open = await Promise.all(records.map(({ port }) => accepts(port)))
  await pause(SETTLE_S * 1_000)
  const before = totalOf(server)
  await pause(seconds * 1_000)
  const after = totalOf(server)
  const cpuShare = (after.cpuSeconds - before.cpuSeconds) / seconds
  const passive = records.filter(({ state }) => state === 'passive').length
  console.log(
    [
      `${label}: ${records.length} databases, ${passive} passive, ${open.filter(Boolean).length} ports open`,
      `RSS ${(after.rssBytes / MIB).toFixed(0)} MB, PSS ${(after.pssBytes / MIB).toFixed(0)} MB (goal: below 150 MB)`,
      `processor ${(cpuShare * 100).toFixed(2)} % of a core (goal: below 1 %)`,
      `${after.writtenBytes - before.writtenBytes} bytes written in ${seconds} s (goal: none)`,
    ].join('\n  '),
  )
}
