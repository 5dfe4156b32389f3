import { afterAll, expect, it, vi } from 'vitest'
import { describeOnStore } from '../../src/store/testing/index.js'
import { CALM } from '../crash/pace.js'
import { newPlace } from '../support/index.js'
import { playRound, type RoundReport } from './round.js'

/**
 * Uses everything while everything is killed, as `npm run soak` does for hours, here for some seconds on one store.
 * `HOMEPORT_SOAK_SEED` repeats the store and the faults of an earlier run.
 */

const SEED = Number(process.env.HOMEPORT_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 31))
/** One store a run, by its seed. */
const KIND = SEED % 2 === 0 ? 'sqlite' : 'postgres'
const MAX_LIFE_MS = 1_500
/** Of a round; the last one kills the server besides. */
const FAULTS = 1

let report: RoundReport | undefined
afterAll(() => console.log(`soak: HOMEPORT_SOAK_SEED=${SEED}; ${KIND}; ${JSON.stringify(report?.counts)}`))
// The SDK reports unreachable servers and repeated steps, which the kills cause.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)

describeOnStore(KIND, 'everything at once', (_openStore, on) => {
  it('loses nothing and leaves nothing behind, whatever is killed', async () => {
    const { location } = await on.newPlace()
    // All tests share one PostgreSQL, which loses data when it is killed; only `npm run soak` kills its backends.
    const kinds = ['everything', 'engines', 'server', 'launcher', 'start', 'stop', 'engine'] as const
    const store = KIND === 'postgres' ? location : undefined
    const place = await newPlace()
    const how = { seed: SEED, faults: FAULTS, longestLifeMs: MAX_LIFE_MS, pace: CALM }
    report = await playRound({ ...how, place, store, kinds })
    expect(report.violations).toEqual([])
  }, 300_000)
})
