import { afterAll, expect, it } from 'vitest'
import { sampled } from '../../../../test/support/sample.js'
import { ClusterMemory } from '../../../queue/testing/nodes/cluster-memory.js'
import { Simulation } from '../../../queue/testing/nodes/simulation.js'
import { runExtension } from './run-extension.js'
import { RUN_PLANTS } from './run-plants.js'

const memory = new ClusterMemory()
afterAll(() => memory.close())
const extensions = [runExtension]

it('several nodes keep their guarantees about runs and bulk cancels', async () => {
  const problems: string[] = []
  // With the second seed the store loses the end of a batch.
  for (const seed of [1, 980_085]) {
    const { problem } = await new Simulation(memory, seed, { extensions }).play()
    if (problem !== undefined)
      problems.push(`${problem}. All events: npm run simulate -- --runs --trace --seed ${seed}`)
  }
  expect(problems).toEqual([])
})

/** The seeds are the first ones that meet the mistake; a few more are played in case the simulation has changed. */
const MORE = 60

const mistakes = [
  ['deliver what has joined a list later', 1],
  ['answer a cancel before the other nodes have dropped its messages', 1],
  ['answer a pause of a run before the other nodes have dropped its messages', 8],
  ['count an ended run as cancelled', 2],
  ['answer a pause and go on', 7],
  ['report no end of an invoked run', 1],
  ['let runs begin while their workflow is paused', 1],
  ['deliver nothing of a restarted run', 1],
] as const
it.each(sampled(mistakes, 4))('the simulation would find a mistake: %s', async (name, from) => {
  let seed = from - 1
  let problem: string | undefined
  while (problem === undefined && seed < from + MORE)
    problem = (await new Simulation(memory, ++seed, { extensions, plant: RUN_PLANTS[name] }).play()).problem
  expect(problem).toBeDefined()
})
