/**
 * Measures the constants of the cost model (`src/cli/bench/model.ts`), and the error of the model. Runs the workloads of
 * `homeport bench` against a server of its own, whose plans do not limit commands. Around each loop it reads the processor
 * time of the server's threads and engines, and the size of the store.
 *
 *   npm run bench scale
 *   npm run bench scale -- --store postgres
 *   node --import ./scripts/lib/measured.mjs bench/scale.bench.ts --rounds 3 --callers 1,50 --only publish,steps
 *
 * The build in `dist/` is measured. Take the constants from 50 callers, on a quiet machine.
 */
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BenchOptions, type Timed, withBench } from '../src/cli/bench/bench.js'
import { measureMachine } from '../src/cli/bench/calibrate.js'
import { LOADS } from '../src/cli/bench/index.js'
import { COSTS, predict, WORKLOADS, type Work, type Workload } from '../src/cli/bench/model.js'
import { processIo } from '../src/cli/io.js'
import { Api } from '../src/cli/remote/api.js'
import type { Session } from '../src/cli/remote/remote.js'
import { DEFAULT_PLANS } from '../src/contract/databases/plans.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { cleanup, startHomeport, tempDir } from '../test/support/index.js'
import { createDatabase } from './support/databases.js'
import { median } from './support/figures.js'
import { benchStore } from './support/store-choice.js'
import { markedTimeUs, serverTime } from './support/threads.js'

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    callers: { type: 'string', default: '1,50' },
    only: { type: 'string', default: WORKLOADS.join(',') },
  },
})

const STORE_FILE = 'homeport.sqlite'

/** The figures of one round of one workload, per operation. */
interface Round extends Work {
  readonly perSecond: number
  readonly predicted: number
  /** Processor time of PostgreSQL, microseconds. */
  readonly postgresUs: number
  /** Growth of the store's file, bytes. */
  readonly grownBytes: number
}

const plansFile = join(tempDir(), 'plans.json')
const unlimited = { ...DEFAULT_PLANS.payg, db_max_commands_per_second: 10_000_000 }
writeFileSync(plansFile, JSON.stringify({ payg: unlimited }))
const postgres = benchStore === 'postgres' ? await startPostgresServer('full') : undefined
if (postgres) await createDatabase(postgres.url, 'scale')
const env: Record<string, string> = postgres ? { HOMEPORT_STORE: `${postgres.url}/scale` } : {}
const homeport = await startHomeport({ args: ['--plans-file', plansFile], env })
const { dataDir } = homeport.place
const { email, apiKey, queueToken } = homeport.credentials
const profile = { apiUrl: homeport.apiUrl, queueUrl: homeport.queueUrl, email, apiKey, queueToken }

/** A database for all workloads. Its engine outlives them, so that its processor time can be read. */
const database = { database_name: 'bench', platform: 'aws', primary_region: 'us-east-1' }
await homeport.api('POST', '/v2/redis/database', database)

const silent = (): void => {}
const session: Session = {
  api: new Api({ origin: dataDir, dataDir, profile }),
  io: processIo,
  isJson: true,
  show: silent,
  say: silent,
  endWith: silent,
  confirm: async () => {},
}

/** Processor time and storage used so far. */
interface Reading extends Work {
  readonly postgresUs: number
  readonly storeBytes: number
}

function readAll(): Reading {
  const { user, system } = process.cpuUsage()
  return {
    ...serverTime(homeport.pid, dataDir),
    callerUs: user + system,
    postgresUs: postgres ? markedTimeUs(postgres.files.data) : 0,
    storeBytes: postgres ? Number.NaN : statSync(join(dataDir, STORE_FILE)).size,
  }
}

async function measure(workload: Workload, callers: number): Promise<Round> {
  const machine = measureMachine(dataDir)
  const options: BenchOptions = {
    seconds: Number(given.seconds),
    callers,
    size: 64,
    pipeline: 1,
    database: 'bench',
    runs: 20_000,
    receiver: '127.0.0.1',
  }
  let before = readAll()
  let after = before
  const timed: Timed = async (part) => {
    before = readAll()
    const loaded = await part()
    after = readAll()
    return loaded
  }
  const { perSecond, operations } = await withBench(session, options, (bench) => LOADS[workload](bench, timed))
  const each = (name: keyof Reading): number => (after[name] - before[name]) / operations
  return {
    perSecond,
    predicted: predict(COSTS[workload], machine, workload === 'cancel' ? 1 : callers).perSecond,
    mainUs: each('mainUs'),
    otherUs: each('otherUs'),
    callerUs: each('callerUs'),
    postgresUs: each('postgresUs'),
    grownBytes: each('storeBytes'),
  }
}

function rowOf(workload: Workload, callers: number, rounds: readonly Round[]) {
  const middle = (name: keyof Round): number => median(rounds.map((one) => one[name]))
  const rates = rounds.map(({ perSecond }) => Math.round(perSecond))
  return {
    workload,
    callers,
    'per second': `${Math.round(middle('perSecond'))} (${Math.min(...rates)} to ${Math.max(...rates)})`,
    'main, us': middle('mainUs').toFixed(1),
    'other, us': middle('otherUs').toFixed(1),
    'caller, us': middle('callerUs').toFixed(1),
    ...(postgres
      ? { 'PostgreSQL, us': middle('postgresUs').toFixed(1) }
      : {
          'predicted / measured': (middle('predicted') / middle('perSecond')).toFixed(2),
          'store, bytes': middle('grownBytes').toFixed(0),
        }),
  }
}

const rows: Record<string, string | number>[] = []
for (const workload of WORKLOADS.filter((one) => given.only.split(',').includes(one))) {
  for (const callers of workload === 'cancel' ? [1] : given.callers.split(',').map(Number)) {
    const rounds: Round[] = []
    for (let round = 0; round < Number(given.rounds); round++) rounds.push(await measure(workload, callers))
    rows.push(rowOf(workload, callers, rounds))
  }
}
console.table(rows)
await cleanup()
await postgres?.stop()
