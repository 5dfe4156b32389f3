import { afterAll, beforeAll, expect, it } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import { type Baselines, type Tried, takeBaselines, tryDamage } from './campaign.js'
import { type Golden, makeGolden } from './golden.js'
import { isViolation } from './judge.js'
import { planTrials } from './plan.js'

/**
 * A sample of `npm run damage`: each run of the tests takes other trials from the same plan. `HOMEPORT_DAMAGE_SEED`
 * repeats those of an earlier run.
 */

const SEED = Number(process.env.HOMEPORT_DAMAGE_SEED ?? Math.floor(Math.random() * 2 ** 31))
const TRIALS = 1
/** Kinds of files for which some damage still has the wrong outcome; `npm run damage` shows which. */
const OPEN = ['authority key', 'authority certificate', 'server key', 'server certificate', 'tls']

const tried: Tried[] = []
let golden: Golden
let baselines: Baselines
beforeAll(async () => {
  golden = await makeGolden(['stopped'])
  baselines = await takeBaselines(golden, ['stopped'], 'once')
})
afterAll(() => {
  const lines = tried.map(({ trial, done, verdict }) => `${trial.target} ${done}: ${verdict.outcome}`)
  console.log(`damage: HOMEPORT_DAMAGE_SEED=${SEED}; ${lines.join('; ')}`)
})

it('the server changes and deletes nothing silently, whatever is damaged', async () => {
  const random = randomFrom(SEED)
  const plan = planTrials(golden, { seed: SEED, each: 1, flips: 20 }).filter(({ target }) => !OPEN.includes(target))
  // Where there is nothing to damage, another one is tried.
  while (tried.length < TRIALS && plan.length > 0) {
    const [trial] = plan.splice(Math.floor(random() * plan.length), 1)
    const result = trial && (await tryDamage(golden, baselines, trial))
    if (result) tried.push(result)
  }
  expect(tried.filter(({ verdict }) => isViolation(verdict.outcome))).toEqual([])
}, 300_000)
