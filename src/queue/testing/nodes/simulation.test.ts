import { afterAll, expect, it } from 'vitest'
import { MemoryStore } from '../../../store/testing/memory-store.js'
import { Simulation } from './simulation.js'

const memory = new MemoryStore()
afterAll(() => memory.close())

it('keeps its promises', async () => {
  const began = performance.now()
  for (let seed = 1; seed <= 5; seed++) {
    const played = await new Simulation(memory, seed, {}, true).play()
    console.log(seed, played.problem, played.steps, played.requests, played.declaredDead, played.fires, Math.round(performance.now()-began))
    if (played.problem) { console.log(played.trace.join('\n')); break }
  }
})
