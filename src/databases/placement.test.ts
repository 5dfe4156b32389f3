import { expect, it } from 'vitest'
import { DEFAULT_PLANS } from '../contract/databases/plans.js'
import { type Candidate, type Capacity, chooseHome, Placement, type PlacementDeps } from './placement.js'

const GIB = 2 ** 30
const EMPTY: Capacity = {
  region: undefined,
  hasSpace: true,
  awake: 0,
  mostAwake: 200,
  databases: 0,
  promisedBytes: 0,
  engineBytes: 0,
  memoryBytes: 64 * GIB,
  availableBytes: 60 * GIB,
}
const at = (node: string, capacity: Partial<Capacity> = {}): Candidate => ({
  node,
  capacity: { ...EMPTY, ...capacity },
})
const needs = { region: 'eu-west-1', memoryBytes: GIB } as const
const choose = (all: readonly Candidate[], random = () => 0) => chooseHome(all, needs, random)

it('the placement chooses a node of the region, or one that serves all regions', () => {
  expect(choose([at('a', { region: 'us-east-1' }), at('b')])).toBe('b')
  expect(choose([at('a'), at('b', { region: 'eu-west-1', promisedBytes: GIB })])).toBe('b')
  expect(choose([at('a', { region: 'us-east-1' })])).toBeUndefined()
  expect(choose([])).toBeUndefined()
})

it('the placement chooses the emptier one of two: by share of its memory, then by number of databases', () => {
  expect(choose([at('a', { promisedBytes: GIB }), at('b')])).toBe('b')
  expect(choose([at('a', { promisedBytes: GIB, memoryBytes: 4 * GIB }), at('b', { promisedBytes: 3 * GIB })])).toBe('b')
  expect(choose([at('a', { databases: 3 }), at('b', { databases: 2 })])).toBe('b')
  expect(choose([at('a'), at('b')])).toBe('a')
})

it('the placement draws two different ones, each as often as the others', () => {
  const nodes = ['a', 'b', 'c', 'd'].map((name, index) => at(name, { databases: index }))
  const counts = new Map<string | undefined, number>()
  const steps = Array.from({ length: 12 }, (_, index) => index / 12)
  for (const first of steps) {
    for (const second of steps) {
      const draws = [first, second]
      const home = choose(nodes, () => draws.shift() ?? 0)
      counts.set(home, (counts.get(home) ?? 0) + 1)
    }
  }
  // Of the six pairs, `a` is the emptier one in three, `b` in two, `c` in one, and `d` in none.
  expect(Object.fromEntries(counts)).toEqual({ a: 72, b: 48, c: 24 })
})

it('the placement prefers capacity, then space on the disk, and else leaves the refusal to a node', () => {
  expect(choose([at('a', { availableBytes: 1 }), at('b', { databases: 9 })])).toBe('b')
  expect(choose([at('a', { awake: 200 }), at('b', { databases: 9 })])).toBe('b')
  expect(choose([at('a', { region: 'eu-west-1', hasSpace: false }), at('b')])).toBe('b')
  expect(choose([at('a', { hasSpace: false }), at('b', { awake: 200 })])).toBe('b')
  expect(choose([at('a', { hasSpace: false })])).toBe('a')
})

it('the placement offers a node only while everything in it serves: not when it starts, nor when it stops', async () => {
  let answer: () => unknown = () => expect.fail()
  const cluster = { takesPart: false, isDraining: false, peers: [], ask: async () => [] }
  const deps = {
    cluster: Object.assign(cluster, { handle: (_: string, handler: () => unknown) => (answer = handler) }),
    node: 'a',
    plans: DEFAULT_PLANS,
    ownCapacity: async () => EMPTY,
  }
  expect(new Placement(deps as unknown as PlacementDeps)).toBeDefined()
  expect(await answer()).toBeUndefined()
  cluster.takesPart = true
  expect(await answer()).toBe(EMPTY)
})
