/**
 * `npm run model -- [--seed <first>] [--runs <how many>] [--moves <of each>] [--store sqlite|postgres] [--crowd]`: runs
 * random simulations of workflow runs, one for each seed, with the real intake, message kinds, bulk actions and store, and
 * a simulated clock, dispatcher and endpoint. A violated guarantee ends it and prints the seed; the same seed repeats the
 * simulation. With `--crowd`, actions happen concurrently instead of one after the other: the same seed then does the
 * same actions, but their transactions interleave at random.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openStore, type Store } from '../src/store/index.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { Crowd } from '../src/workflow/testing/crowd/crowd.js'
import { CENSUS_MODULE } from '../src/workflow/testing/model/census.js'
import { Simulation } from '../src/workflow/testing/model/simulation.js'

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '100' },
    moves: { type: 'string', default: '300' },
    store: { type: 'string', default: 'sqlite' },
    crowd: { type: 'boolean', default: false },
  },
})
const FIRST = Number(given.seed)
const RUNS = Number(given.runs)
const MOVES = Number(given.moves)
/** How many simulations share a store: a large store would slow all of them down. */
const SEEDS_PER_STORE = 25
/** Concurrent actions of a crowd. */
const AT_ONCE = 10

async function play(store: Store, seed: number): Promise<void> {
  try {
    if (given.crowd) return await playCrowd(new Crowd(store, seed))
    const simulation = new Simulation(store, seed)
    await simulation.play(MOVES)
    await simulation.finish()
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    const how = `--runs 1 --moves ${MOVES} --store ${given.store}${given.crowd ? ' --crowd' : ''}`
    throw new Error(`seed ${seed}: ${problem}. Again: npm run model -- --seed ${seed} ${how}`, { cause })
  }
}

async function playCrowd(crowd: Crowd): Promise<void> {
  await crowd.play(Math.ceil(MOVES / AT_ONCE), AT_ONCE)
  await crowd.finish()
}

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'homeport-model-'))
  const server = given.store === 'postgres' ? await startPostgresServer() : undefined
  const location = server ? `${server.url}/postgres` : 'sqlite'
  const onFailure = (error: Error): void => {
    throw error
  }
  const store = await openStore({ location, dataDir, modules: [CENSUS_MODULE], onFailure })
  try {
    await work(store)
  } finally {
    await store.close()
    await server?.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

for (let first = FIRST; first < FIRST + RUNS; first += SEEDS_PER_STORE) {
  const end = Math.min(first + SEEDS_PER_STORE, FIRST + RUNS)
  await withStore(async (store) => {
    for (let seed = first; seed < end; seed++) await play(store, seed)
  })
  console.log(`seeds ${first} to ${end - 1} kept every guarantee, with ${MOVES} moves each`)
}
