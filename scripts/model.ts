/**
 * `npm run model -- [--seed <first>] [--runs <how many>] [--moves <of each>] [--store sqlite|postgres] [--crowd]`: plays
 * worlds of workflow runs at random, one for each seed, against the real intake, message kinds, bulk actions and store,
 * with a simulated clock, engine and endpoint. A promise that breaks ends it with the seed that shows it; the same seed
 * plays the same world again. With `--crowd`, many things happen at the same time instead of one after the other: the
 * same seed then does the same things, which meet in the store as chance has it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openStore, type Store } from '../src/store/index.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { Crowd } from '../src/workflow/testing/crowd/crowd.js'
import { CENSUS_MODULE } from '../src/workflow/testing/model/census.js'
import { World } from '../src/workflow/testing/model/world.js'

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
/** How many worlds share a store: a large store would slow all of them down. */
const WORLDS_A_STORE = 25
/** So much of a crowd happens at the same time. */
const AT_ONCE = 10

async function play(store: Store, seed: number): Promise<void> {
  try {
    if (given.crowd) return await playCrowd(new Crowd(store, seed))
    const world = new World(store, seed)
    await world.play(MOVES)
    await world.finish()
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

for (let first = FIRST; first < FIRST + RUNS; first += WORLDS_A_STORE) {
  const end = Math.min(first + WORLDS_A_STORE, FIRST + RUNS)
  await withStore(async (store) => {
    for (let seed = first; seed < end; seed++) await play(store, seed)
  })
  console.log(`seeds ${first} to ${end - 1} kept every promise, with ${MOVES} moves each`)
}
