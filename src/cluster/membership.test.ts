import { expect, it } from 'vitest'
import { randomFrom } from '../base/testing/random.js'
import { DeathWatch, Tenure } from './membership.js'
import { type PlantedBugs, SimulatedNodes } from './testing/simulated-nodes.js'

const at = (monotonicMs: number, wallMs = monotonicMs) => ({ monotonicMs, wallMs })

it('a node may act until 4 s after it sent its last beat, by both clocks', () => {
  const tenure = new Tenure()
  expect(tenure.mayAct(0, 0)).toBe(false)
  tenure.beaten(at(1_000, 50_000))
  expect(tenure.mayAct(4_999, 53_999)).toBe(true)
  expect(tenure.mayAct(5_000, 53_999)).toBe(false)
  expect(tenure.mayAct(1_001, 54_000)).toBe(false)
})

it('a node counts its latest beat, in whichever order the answers arrive', () => {
  const tenure = new Tenure()
  tenure.beaten(at(3_000))
  tenure.beaten(at(1_000))
  expect(tenure.mayAct(6_999, 6_999)).toBe(true)
  tenure.end()
  expect(tenure.mayAct(3_000, 3_000)).toBe(false)
})

/** Looks every 500 ms, each answered at once, from `fromMs` on; returns when the node is found silent. */
function silentAt(watch: DeathWatch, fromMs: number, untilMs: number, beat = 7): number | undefined {
  for (let nowMs = fromMs; nowMs <= untilMs; nowMs += 500) {
    const look = { sentMs: nowMs, returnedMs: nowMs, beats: [{ incarnation: 2, beat }] }
    if (watch.examine(look).length > 0) return nowMs
  }
  return undefined
}

it('a node counts as silent after 5 s with the same beat', () => {
  expect(silentAt(new DeathWatch(), 0, 20_000)).toBe(5_000)
})

it('the 5 s start again after another beat and after a failed look', () => {
  const watch = new DeathWatch()
  expect(silentAt(watch, 0, 4_500)).toBeUndefined()
  expect(silentAt(watch, 5_000, 9_500, 8)).toBeUndefined()
  watch.lookFailed()
  expect(silentAt(watch, 10_000, 40_000, 8)).toBe(15_000)
})

it('a late or slow look counts like one that is neither', () => {
  const watch = new DeathWatch()
  expect(silentAt(watch, 0, 3_000)).toBeUndefined()
  // 60 s late, then 10 s slow.
  watch.examine({ sentMs: 64_500, returnedMs: 74_500, beats: [{ incarnation: 2, beat: 7 }] })
  expect(silentAt(watch, 75_000, 90_000)).toBe(75_500)
})

it('a node counts as silent although every look is late and slow, as on a busy machine', () => {
  const watch = new DeathWatch()
  let silentMs: number | undefined
  for (let nowMs = 0; nowMs < 60_000 && silentMs === undefined; nowMs += 4_000) {
    const look = { sentMs: nowMs, returnedMs: nowMs + 2_000, beats: [{ incarnation: 2, beat: 7 }] }
    if (watch.examine(look).length > 0) silentMs = nowMs
  }
  expect(silentMs).toBe(24_000)
})

/** Scenes of neighbouring seeds have little in common. */
const randomOf = (seed: number) => randomFrom(seed * 2_654_435_761)

const SEEDS = Number(process.env.HOMEPORT_TEST_SEEDS ?? 25)

it('nodes keep their guarantees under pauses, kills, slow calls, lost answers and outages of the store', () => {
  let declaredDead = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const nodes = new SimulatedNodes(randomOf(seed))
    expect(nodes.run(), `seed ${seed}`).toBeUndefined()
    declaredDead += nodes.declaredDead
  }
  expect(declaredDead).toBeGreaterThan(SEEDS / 4)
})

it('no node is declared dead because the store was away', () => {
  for (let seed = 1; seed <= 5; seed++) {
    const nodes = new SimulatedNodes(randomOf(seed), {}, 'outages')
    expect([nodes.run(), nodes.declaredDead]).toEqual([undefined, 0])
  }
})

// Earlier seeds do not meet the mistake; later ones are searched in case the simulation has changed.
it.each<[string, PlantedBugs, number]>([
  ['declare dead without the beat', { buryWithoutBeat: true }, 46],
  ['take without being live', { claimWithoutLive: true }, 342],
  ['act from the time of the answer', { tenureFromReply: true }, 10],
])('the simulation would find a mistake: %s', (_, bugs, from) => {
  let seed = from
  while (seed < 3_000 && new SimulatedNodes(randomOf(seed), bugs).run() === undefined) seed++
  expect(seed).toBeLessThan(3_000)
})
