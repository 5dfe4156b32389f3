/**
 * `npm run model -- [--seed <first>] [--runs <how many>] [--moves <of each>]`: plays worlds of workflow runs at random,
 * one for each seed, against the real intake, message kind, bulk actions and store, with a simulated clock, engine and
 * endpoint. A promise that breaks ends it with the seed that shows it; the same seed plays the same world again.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openStore, type Store } from '../src/store/index.js'
import { CENSUS_MODULE } from '../src/workflow/testing/model/census.js'
import { World } from '../src/workflow/testing/model/world.js'

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '100' },
    moves: { type: 'string', default: '300' },
  },
})
const FIRST = Number(given.seed)
const RUNS = Number(given.runs)
const MOVES = Number(given.moves)
/** How many worlds share a store: a large store would slow all of them down. */
const WORLDS_A_STORE = 25

async function play(store: Store, seed: number): Promise<void> {
  const world = new World(store, seed)
  try {
    await world.play(MOVES)
    await world.finish()
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`seed ${seed}: ${problem}. Again: npm run model -- --seed ${seed} --runs 1 --moves ${MOVES}`, {
      cause,
    })
  }
}

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'homeport-model-'))
  const onFailure = (error: Error): void => {
    throw error
  }
  const store = await openStore({ location: 'sqlite', dataDir, modules: [CENSUS_MODULE], onFailure })
  try {
    await work(store)
  } finally {
    await store.close()
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
