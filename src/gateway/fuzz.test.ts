import { expect, it } from 'vitest'
import { fuzzOnce } from './testing/fuzz.js'

/** A fixed seed; a nightly run (`npm run fuzz`) uses others. */
const SEED = 20_261_121
const INPUTS = 5_000

it('the codec keeps its guarantees for random input', () => {
  for (let seed = SEED; seed < SEED + INPUTS; seed++) {
    try {
      fuzzOnce(seed)
    } catch (error) {
      expect.fail(`npm run fuzz -- --seed ${seed} --inputs 1: ${String(error)}`)
    }
  }
})
