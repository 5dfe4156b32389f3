import { afterAll, expect, it } from 'vitest'
import { sampled } from '../../../../test/support/sample.js'
import { isObject } from '../../../base/index.js'
import { look } from '../../../cluster/transactions/cluster-partitions.js'
import type { Operation } from '../../../store/operation.js'
import { ClusterMemory } from './cluster-memory.js'
import { PLANTS } from './plants.js'
import { Simulation } from './simulation.js'

const memory = new ClusterMemory()
afterAll(() => memory.close())

const SEEDS = Number(process.env.HOMEPORT_TEST_SEEDS ?? 4)

it('nodes keep their promises under pauses, kills, lost calls, drains, set clocks, outages and failovers', async () => {
  const problems: string[] = []
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problem } = await new Simulation(memory, seed).play()
    if (problem !== undefined) problems.push(`${problem}. All events: npm run simulate -- --seed ${seed} --seeds 1`)
  }
  expect(problems).toEqual([])
})

it('the simulation does the same for the same seed', async () => {
  const [one, other] = [
    await new Simulation(memory, 3, { isTraced: true }).play(),
    await new Simulation(memory, 3, { isTraced: true }).play(),
  ]
  expect(other).toEqual(one)
  expect([one.requests > 20, one.fires]).toEqual([true, 2])
})

/** Compares each quick look with a whole one. */
class ComparedMemory extends ClusterMemory {
  looks = 0
  differences = 0

  override run<Args, Result>(operation: Operation<Args, Result>, args: Args): Result {
    const result = super.run(operation, args)
    if (operation.name === look.name && isObject(args)) {
      this.looks++
      if (JSON.stringify(result) !== JSON.stringify(this.wholeLook(Number(args.seen)))) this.differences++
    }
    return result
  }
}

it('a quick look of the simulation sees what a whole look sees', async () => {
  const compared = new ComparedMemory()
  await new Simulation(compared, 5).play()
  compared.close()
  expect([compared.looks > 100, compared.differences]).toEqual([true, 0])
})

/** The seeds are the first ones that meet the mistake; a few more are played in case the simulation has changed. */
const MORE = 150

const mistakes = [
  ['hint before the commit', 1],
  ['load nothing after a gain', 1],
  ['forget at the wrong node', 22],
  ['act from the time of the answer', 16],
  ['forget what ended while a load ran', 23],
  ['send several of a queue at once', 3],
  ['begin the period of a key again after a hand-over', 10],
  ['leave a schedule due when it has fired', 1],
] as const
it.each(sampled(mistakes, 4))('the simulation would find a mistake: %s', async (name, from) => {
  let seed = from - 1
  let problem: string | undefined
  while (problem === undefined && seed < from + MORE) {
    problem = (await new Simulation(memory, ++seed, { plant: PLANTS[name] }).play()).problem
  }
  expect(problem).toBeDefined()
})
