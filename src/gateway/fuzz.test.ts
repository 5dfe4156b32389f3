import { expect, it } from 'vitest'
import { fuzzOnce } from './testing/fuzz.js'

/** Another one is looked through every night (`npm run fuzz`). */
const SEED = 20_261_121
const INPUTS = 20_000

it('the codec keeps its promises whatever it is fed', () => {
  for (let seed = SEED; seed < SEED + INPUTS; seed++) {
    try {
      fuzzOnce(seed)
    } catch (error) {
      expect.fail(`npm run fuzz -- --seed ${seed} --inputs 1: ${String(error)}`)
    }
  }
})
