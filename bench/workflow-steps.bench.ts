/**
 * Runs of five steps, one and fifty at a time, from the trigger to the end. The contestants take turns:
 *
 * - Homeport on SQLite (synchronous=FULL), or on the PostgreSQL server of DBOS, with a minimal program that speaks the step
 *   protocol over HTTP;
 * - Restate with its own server and SDK;
 * - DBOS on PostgreSQL (fsync on), which needs no HTTP because it is a library;
 * - three floors: the requests of Homeport in both directions through a bare server that stores nothing, and through one
 *   that commits one row for each request, on SQLite and on the PostgreSQL server.
 *
 *   npm run bench workflow-steps
 *   npm run bench workflow-steps -- --store postgres
 *   node --import ./scripts/lib/measured.mjs bench/workflow-steps.bench.ts --runs 200 --rounds 1 --at-a-time 50 --only homeport,restate
 *
 * All contestants are warmed up with many runs at a time, like a server that has been running for a while. The
 * processor time is that of the server alone, which is measurable only for Homeport and the floor.
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Agent, request } from 'undici'
import { type PostgresServer, startPostgresServer } from '../src/store/testing/postgres-server.js'
import { createDatabase } from './support/databases.js'
import { median, percentile } from './support/figures.js'
import { type LoadResult, runLoad } from './support/load.js'
import { startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'
import { type StepService, startStepProgram } from './support/step-program.js'
import { benchStore } from './support/store-choice.js'

const { values: given } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '2000' },
    'at-a-time': { type: 'string', default: '1,50' },
    only: { type: 'string' },
  },
})
const RUNS = Number(given.runs)
const ROUNDS = Number(given.rounds)
/** Runs one at a time take much longer, so that load uses only a fifth of the runs. */
const LOADS = given['at-a-time'].split(',').map((text) => {
  const atATime = Number(text)
  return { atATime, runs: atATime === 1 ? Math.ceil(RUNS / 5) : RUNS }
})
/** After only 300 runs, two thirds of the JavaScript are still unoptimized, and a step takes twice the processor time. */
const WARM_UP = Number(given['warm-up'])
const WARM_UP_AT_A_TIME = 10
const STEPS = 5

/** A contestant that runs workflows of five steps. */
interface Contestant {
  /** The process of the server, if it runs nothing else. */
  readonly serverPid?: number | undefined
  measure(runs: number, atATime: number): Promise<LoadResult>
  stop(): Promise<void>
}

const program = await startStepProgram(50)

/** One server for everything that is on PostgreSQL; started when it is first needed. */
let postgres: Promise<PostgresServer> | undefined
async function postgresUrl(): Promise<string> {
  postgres ??= startPostgresServer('full')
  return (await postgres).url
}

async function homeport(): Promise<Contestant> {
  if (benchStore === 'sqlite') return stepService('workflow-server.ts')
  const url = await postgresUrl()
  await createDatabase(url, 'homeport_bench')
  return stepService('workflow-server.ts', { BENCH_STORE: `${url}/homeport_bench` })
}

async function stepService(module: string, env: Readonly<Record<string, string>> = {}): Promise<Contestant> {
  const peer = await startPeer<StepService>(module, env)
  return {
    serverPid: peer.child.pid,
    measure: (runs, atATime) => runLoad(runs, atATime, () => program.run(peer.facts)),
    stop: () => peer.stop(),
  }
}

async function restate(): Promise<Contestant> {
  const peer = await startPeer<{ ingressUrl: string }>('restate.mjs', { RESTATE_LOGGING: 'ERROR' })
  const dispatcher = new Agent({ connections: 50 })
  const one = async (): Promise<void> => {
    const answer = await request(`${peer.facts.ingressUrl}/bench/run`, { dispatcher, method: 'POST' })
    const text = await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(`Restate answered ${answer.statusCode}: ${text}`)
  }
  const stop = async (): Promise<void> => {
    await dispatcher.close()
    await peer.stop()
  }
  return { measure: (runs, atATime) => runLoad(runs, atATime, one), stop }
}

async function dbos(): Promise<Contestant> {
  const peer = await startPeer<string>('dbos.mjs', { POSTGRES_URL: await postgresUrl() })
  const measure = async (runs: number, atATime: number): Promise<LoadResult> => {
    peer.child.send({ kind: 'measure', runs, atATime })
    const [result] = await once(peer.child, 'message')
    return result as LoadResult
  }
  return { measure, stop: () => peer.stop() }
}

const CONTESTANTS: Readonly<Record<string, () => Promise<Contestant>>> = {
  homeport,
  restate,
  dbos,
  'floor: bare HTTP, nothing kept': () => stepService('workflow-floor.ts'),
  'floor: bare HTTP, a row for each request on SQLite': () =>
    stepService('workflow-floor.ts', { FLOOR_STORE: 'sqlite' }),
  'floor: bare HTTP, a row for each request on PostgreSQL': async () => {
    const url = await postgresUrl()
    await createDatabase(url, 'floor_bench')
    return stepService('workflow-floor.ts', { POSTGRES_URL: `${url}/floor_bench` })
  },
}

/** A round of one contestant. */
interface Round extends LoadResult {
  readonly runs: number
  readonly serverCpuUs: number | undefined
}

async function round({ measure, serverPid }: Contestant, atATime: number, runs: number): Promise<Round> {
  const serverUs = (): number | undefined => (serverPid === undefined ? undefined : processUs(serverPid))
  const before = serverUs()
  const result = await measure(runs, atATime)
  const after = serverUs()
  return { ...result, runs, serverCpuUs: before === undefined || after === undefined ? undefined : after - before }
}

/** Contestants take turns, so that a change in the speed of the machine affects all of them. */
async function play(contestants: ReadonlyMap<string, Contestant>, atATime: number, runs: number) {
  const results = new Map<string, Round[]>([...contestants.keys()].map((name) => [name, []]))
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const [name, contestant] of contestants) results.get(name)?.push(await round(contestant, atATime, runs))
  }
  return results
}

const perSecond = ({ runs, elapsedMs }: Round): number => runs / (elapsedMs / 1_000)

function rowOf(rounds: readonly Round[]) {
  const rate = median(rounds.map(perSecond))
  const latencies = rounds.flatMap((one) => one.latenciesMs)
  const cpu = rounds.flatMap(({ serverCpuUs, runs }) => (serverCpuUs === undefined ? [] : [serverCpuUs / runs / STEPS]))
  return {
    'runs per second': Math.round(rate),
    'steps per second': Math.round(rate * STEPS),
    'p50 ms': percentile(latencies, 0.5).toFixed(1),
    'p99 ms': percentile(latencies, 0.99).toFixed(1),
    'server CPU µs a step': cpu.length > 0 ? Math.round(median(cpu)) : '',
    rounds: rounds.map((one) => Math.round(perSecond(one))).join(' '),
  }
}

function report(results: ReadonlyMap<string, readonly Round[]>, atATime: number, runs: number): void {
  console.log(`\n${runs} runs of ${STEPS} steps, ${atATime} at a time`)
  console.table(Object.fromEntries([...results].map(([name, rounds]) => [name, rowOf(rounds)])))
}

const wanted = given.only?.split(',')
const contestants = new Map<string, Contestant>()
try {
  for (const [name, start] of Object.entries(CONTESTANTS)) {
    if (!wanted || wanted.some((word) => name.startsWith(word))) contestants.set(name, await start())
  }
  for (const contestant of contestants.values()) await contestant.measure(WARM_UP, WARM_UP_AT_A_TIME)
  for (const { atATime, runs } of LOADS) report(await play(contestants, atATime, runs), atATime, runs)
} finally {
  for (const contestant of contestants.values()) await contestant.stop()
  await program.close()
  await (await postgres)?.stop()
}
