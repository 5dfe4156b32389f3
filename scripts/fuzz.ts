/**
 * `npm run fuzz [-- --inputs <count>] [--seed <number>]`: feeds the gateway's codec millions of random inputs in both
 * directions. Every input is made from its own number, which is printed when the input breaks an invariant. The same
 * number makes the same input. Without `--seed` the program begins with a random number.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { fuzzOnce } from '../src/gateway/testing/fuzz.js'

const MAX_SEED = 2 ** 47
const PRINT_EVERY = 500_000

const { values } = parseArgs({
  options: { inputs: { type: 'string', default: '5000000' }, seed: { type: 'string', default: '' } },
})
const inputs = Number(values.inputs)
const first = values.seed === '' ? randomInt(MAX_SEED) : Number(values.seed)
if (!Number.isSafeInteger(inputs) || !Number.isSafeInteger(first)) throw new Error('--inputs and --seed take numbers')

console.log(`${inputs} inputs from seed ${first} on`)
for (let done = 0; done < inputs; done++) {
  try {
    fuzzOnce(first + done)
  } catch (error) {
    console.error(error)
    console.error(`again: npm run fuzz -- --seed ${first + done} --inputs 1`)
    process.exit(1)
  }
  if ((done + 1) % PRINT_EVERY === 0) console.log(`${done + 1} done`)
}
console.log('no invariant was broken')
