/**
 * Runs of five steps, one and fifty at a time, from the trigger to the end, in turns: Homeport on SQLite
 * (synchronous=FULL) with a lean program that speaks the step protocol over HTTP; Restate with its own server and SDK;
 * DBOS on PostgreSQL (fsync on), which needs no HTTP because it is a library; and a floor, the requests of Homeport in
 * both directions through a bare server that keeps nothing.
 *
 *   npm run bench workflow-steps
 *   node --import tsx bench/workflow-steps.bench.ts --runs 200 --rounds 1
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Agent, request } from 'undici'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { median } from './support/http-load.js'
import { type LoadResult, percentile, runLoad } from './support/load.js'
import { startPeer } from './support/peers.js'
import { type StepService, startStepProgram } from './support/step-program.js'

const { values: given } = parseArgs({
  options: { runs: { type: 'string', default: '2000' }, rounds: { type: 'string', default: '3' } },
})
const RUNS = Number(given.runs)
const ROUNDS = Number(given.rounds)
const LOADS = [
  { atATime: 1, runs: Math.ceil(RUNS / 10) },
  { atATime: 50, runs: RUNS },
] as const
const STEPS = 5

/** Somebody who runs workflows of five steps. */
interface Contestant {
  measure(runs: number, atATime: number): Promise<LoadResult>
  stop(): Promise<void>
}

const program = await startStepProgram(50)

async function stepService(module: string): Promise<Contestant> {
  const peer = await startPeer<StepService>(module)
  return {
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
  const postgres = await startPostgresServer('full')
  const peer = await startPeer<string>('dbos.mjs', { POSTGRES_URL: postgres.url })
  const measure = async (runs: number, atATime: number): Promise<LoadResult> => {
    peer.child.send({ kind: 'measure', runs, atATime })
    const [result] = await once(peer.child, 'message')
    return result as LoadResult
  }
  const stop = async (): Promise<void> => {
    await peer.stop()
    await postgres.stop()
  }
  return { measure, stop }
}

const CONTESTANTS: Readonly<Record<string, () => Promise<Contestant>>> = {
  homeport: () => stepService('workflow-server.ts'),
  restate,
  dbos,
  'floor: bare HTTP, nothing kept': () => stepService('workflow-floor.ts'),
}

/** In turns, so that a machine that gets slower or faster does so for all. */
async function play(contestants: ReadonlyMap<string, Contestant>, atATime: number, runs: number) {
  const results = new Map<string, LoadResult[]>([...contestants.keys()].map((name) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, contestant] of contestants) {
      const result = await contestant.measure(round === 0 ? Math.ceil(runs / 4) : runs, atATime)
      if (round > 0) results.get(name)?.push(result) // the first one warms up
    }
  }
  return results
}

function report(results: ReadonlyMap<string, readonly LoadResult[]>, atATime: number, runs: number): void {
  const rate = (result: LoadResult): number => runs / (result.elapsedMs / 1_000)
  const rows = [...results].map(([name, rounds]) => {
    const perSecond = median(rounds.map(rate))
    const latencies = rounds.flatMap((round) => round.latenciesMs)
    return [
      name,
      {
        'runs per second': Math.round(perSecond),
        'steps per second': Math.round(perSecond * STEPS),
        'p50 ms': percentile(latencies, 0.5).toFixed(1),
        'p99 ms': percentile(latencies, 0.99).toFixed(1),
        rounds: rounds.map((round) => Math.round(rate(round))).join(' '),
      },
    ]
  })
  console.log(`\n${runs} runs of ${STEPS} steps, ${atATime} at a time`)
  console.table(Object.fromEntries(rows))
}

const contestants = new Map<string, Contestant>()
try {
  for (const [name, start] of Object.entries(CONTESTANTS)) contestants.set(name, await start())
  for (const { atATime, runs } of LOADS) report(await play(contestants, atATime, runs), atATime, runs)
} finally {
  for (const contestant of contestants.values()) await contestant.stop()
  await program.close()
}
