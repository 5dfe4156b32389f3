/**
 * `npm run simulate -- [--seed <first>] [--seeds <how many>] [--runs] [--trace]`: plays nodes on one store in virtual time,
 * one play for each seed. The real cluster, queue and transactions run under pauses, kills, lost calls, drains, changed
 * clocks and outages of the store. A violated guarantee ends the program, which prints the seed and the events up to the
 * violation; the same seed repeats them.
 *
 * With `--runs`, it also plays workflow runs, bulk cancels with their undo, pauses and restarts. With `--trace`, it also
 * prints the events of plays without a violation. With `--go-on`, a violation ends only its play. With `--plants [--only
 * <part of its name>]`, it plants each known mistake and prints after how many seeds and seconds it is found.
 */
import { parseArgs } from 'node:util'
import { runExtension } from '../src/bulk/testing/nodes/run-extension.js'
import { RUN_PLANTS } from '../src/bulk/testing/nodes/run-plants.js'
import { ClusterMemory } from '../src/queue/testing/nodes/cluster-memory.js'
import { PLANTS } from '../src/queue/testing/nodes/plants.js'
import { Simulation } from '../src/queue/testing/nodes/simulation.js'

// Clients get many errors, and nobody reads their stacks.
Error.stackTraceLimit = 0

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1000' },
    trace: { type: 'boolean', default: false },
    'go-on': { type: 'boolean', default: false },
    plants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    runs: { type: 'boolean', default: false },
  },
})
const FIRST = Number(given.seed)
const END = FIRST + Number(given.seeds)
/** How often the progress is printed, in seeds. */
const REPORT_EVERY = 1_000

const extensions = given.runs ? [runExtension] : []
const memory = new ClusterMemory()
const totals = { steps: 0, requests: 0, declaredDead: 0, fires: 0 }
const began = performance.now()
const broken = new Map<number, string>()

async function printPlay(seed: number): Promise<void> {
  const { problem, trace } = await new Simulation(memory, seed, { isTraced: true, extensions }).play()
  for (const line of trace) console.log(line)
  console.log(problem === undefined ? `seed ${seed} keeps every promise` : `seed ${seed}: ${problem}`)
}

async function findPlants(): Promise<void> {
  for (const [name, plant] of Object.entries(given.runs ? RUN_PLANTS : PLANTS)) {
    if (!name.includes(given.only)) continue
    const from = performance.now()
    let seed = FIRST
    let problem: string | undefined
    for (; seed < END && problem === undefined; seed++)
      problem = (await new Simulation(memory, seed, { plant, extensions }).play()).problem
    const seconds = ((performance.now() - from) / 1_000).toFixed(1)
    const after = `${seed - FIRST} seeds and ${seconds} s`
    console.log(
      problem === undefined
        ? `${name}: NOT found in ${after}`
        : `${name}: found at seed ${seed - 1}, after ${after}: ${problem}`,
    )
  }
  process.exit(0)
}

if (given.plants) await findPlants()
for (let seed = FIRST; seed < END; seed++) {
  if (given.trace) await printPlay(seed)
  const played = await new Simulation(memory, seed, { extensions }).play()
  for (const name of ['steps', 'requests', 'declaredDead', 'fires'] as const) totals[name] += played[name]
  if (played.problem !== undefined) {
    broken.set(seed, played.problem)
    if (!given['go-on']) {
      await printPlay(seed)
      console.log(`Again: npm run simulate -- --seed ${seed} --seeds 1`)
      process.exit(1)
    }
    console.log(`seed ${seed}: ${played.problem}`)
  }
  const done = seed - FIRST + 1
  if (done % REPORT_EVERY !== 0 && seed + 1 !== END) continue
  const seconds = (performance.now() - began) / 1_000
  const { steps, requests, declaredDead, fires } = totals
  console.log(
    `${done} seeds in ${seconds.toFixed(1)} s: ${steps} steps, ${requests} requests, ${declaredDead} nodes declared dead, ${fires} fires of schedules, ${broken.size} broken`,
  )
}
memory.close()
