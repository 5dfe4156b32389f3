/**
 * `npm run soak -- --minutes <n> [--seed <first>] [--store sqlite|postgres] [--faults <of a round>]`: uses all features of
 * Homeport at once, and kills the server, its launcher, its engines and the backends of PostgreSQL with SIGKILL at random
 * moments. A round begins with an empty data directory and ends with a check of all acknowledged writes. Rounds follow
 * each other until the time is over, each with its own seed. After a violation the exit code is 1, the data directory is
 * kept, and the seed is printed: the same seed makes the same faults at the same moments.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type PostgresServer, startPostgresServer } from '../src/store/testing/postgres-server.js'
import { connectToPostgres } from '../test/crash/queue-ledger-store.js'
import { playRound, type RoundReport } from '../test/soak/round.js'
import { add, summaryLines, type Totals } from '../test/soak/totals.js'
import { cleanup, freePortRange, newPlace } from '../test/support/index.js'

const { values: given } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    store: { type: 'string', default: 'sqlite' },
    faults: { type: 'string', default: '12' },
  },
})
const MAX_LIFE_MS = 8_000
/** Ports for the databases of a round: the most databases that a round has. */
const PORTS = 60

/** A positive number given as an option. */
function positive(name: 'minutes' | 'seed' | 'faults'): number {
  const number = Number(given[name])
  if (Number.isFinite(number) && number > 0) return number
  console.error(`--${name} is "${given[name]}"; give a number above 0.`)
  process.exit(2)
}

const minutes = positive('minutes')
const faults = Math.ceil(positive('faults'))
const first = Math.floor(positive('seed'))
if (given.store !== 'sqlite' && given.store !== 'postgres') {
  console.error(`--store is "${given.store}"; give sqlite or postgres.`)
  process.exit(2)
}

const begun = performance.now()
function say(line: string): void {
  const seconds = Math.floor((performance.now() - begun) / 1000)
  console.log(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} ${line}`)
}

// The SDK reports unreachable servers and repeated steps, which the kills cause.
console.warn = () => undefined
console.error = () => undefined

async function emptyDatabase(server: PostgresServer, name: string): Promise<string> {
  const client = await connectToPostgres(`${server.url}/postgres`)
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return `${server.url}/${name}`
}

/** Plays one round in its own directory, which is kept after a violation. */
async function round(seed: number, postgres: PostgresServer | undefined): Promise<RoundReport> {
  const directory = mkdtempSync(join(tmpdir(), 'hp-soak-'))
  const { from, to } = await freePortRange(PORTS)
  const place = await newPlace({ dataDir: join(directory, 'data'), redisPorts: `${from}-${to}` })
  const store = postgres && (await emptyDatabase(postgres, `soak_${seed}`))
  const sayWithSeed = (line: string) => say(`seed ${seed}: ${line}`)
  const report = await playRound({
    seed,
    faults,
    longestLifeMs: MAX_LIFE_MS,
    place,
    store,
    say: sayWithSeed,
  }).catch(failed(seed))
  const left = await cleanup().then(
    () => [],
    (error: unknown) => [`cleanup: ${String(error)}`],
  )
  const violations = [...report.violations, ...left]
  for (const violation of violations) say(`VIOLATION ${violation}`)
  if (violations.length === 0) rmSync(directory, { recursive: true, force: true })
  else say(`the data directory is kept: ${directory}`)
  return { ...report, violations }
}

const failed =
  (seed: number) =>
  (error: unknown): RoundReport => ({
    seed,
    violations: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
    counts: {},
    faults: {},
    slowestStartMs: 0,
    errors: {},
    refusals: {},
  })

const postgres = given.store === 'postgres' ? await startPostgresServer('full') : undefined
let totals: Totals | undefined
let seed = first
say(`soak of ${minutes} min on ${given.store}, from seed ${first} on, ${faults} faults a round`)
while ((performance.now() - begun) / 60_000 < minutes) totals = add(totals, await round(seed++, postgres))
await postgres?.stop()
if (totals) for (const line of summaryLines(totals)) console.log(line)
const broken = totals?.broken ?? []
if (broken.length > 0)
  console.log(`again: npm run soak -- --minutes 0.1 --store ${given.store} --faults ${faults} --seed ${broken[0]}`)
process.exit(broken.length > 0 ? 1 : 0)
