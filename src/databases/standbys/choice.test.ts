import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Needs } from '../placement.js'
import type { ChosenNode, PlacedStandby } from '../transactions/standbys.js'
import { Choice } from './choice.js'
import type { StandbysDeps } from './deps.js'

/** When the home chooses another node for a standby. */

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

const placed = (id: string, change: Partial<PlacedStandby> = {}): PlacedStandby => ({
  database_id: id,
  slot: 1,
  name: id,
  home: 'a',
  node: 'b',
  placement: 'auto',
  mode: 'async',
  state: 'following',
  epoch: 1,
  now_epoch: 1,
  stand_life: null,
  stand_replid: null,
  stand_offset: null,
  home_incarnation: 1,
  home_state: 'live',
  node_state: 'live',
  complete_until: 1,
  home_offset: 1,
  standby_offset: 1,
  problem: null,
  asked_at: 0,
  ...change,
})

/** A home `a` whose placement chooses the first allowed one of `nodes`. A look returns the databases that got a node. */
function homeWhere(...nodes: string[]) {
  const chosen: string[] = []
  const picked: string[] = []
  const deps = {
    node: 'a',
    clock: { now: () => 0 },
    plans: { payg: { db_disk_threshold: 1 } },
    directory: { has: () => true, rowOf: (id: string) => ({ database_id: id, account_id: 'acc', plan: 'payg' }) },
    sleep: { isAwake: () => true },
    placement: { homeFor: async ({ except }: Needs) => nodes.find((node) => !except?.includes(node)) },
    store: {
      run: async (_: unknown, { databaseId, node }: ChosenNode) => {
        picked.push(node)
        return chosen.push(databaseId) > 0
      },
    },
    logger: { warn: (_: string, about: { error: unknown }) => expect.fail(String(about.error)) },
  }
  const choice = new Choice(deps as unknown as StandbysDeps)
  const look = async (...rows: PlacedStandby[]) => {
    chosen.length = 0
    choice.consider(rows)
    await choice.stop()
    return [...chosen]
  }
  return Object.assign(look, { picked })
}

it('the home chooses another node when one has been away for 30 s without a break', async () => {
  const look = homeWhere('c')
  const away = placed('one', { node_state: 'dead' })
  expect(await look(away)).toEqual([])
  vi.advanceTimersByTime(29_000)
  expect(await look(placed('one'))).toEqual([])
  expect(await look(away)).toEqual([])
  vi.advanceTimersByTime(29_999)
  expect(await look(away)).toEqual([])
  vi.advanceTimersByTime(1)
  expect(await look(away)).toEqual(['one'])
})

it('the home chooses a node at once when the other one is drained, and when there is none', async () => {
  const look = homeWhere('c')
  const rows = [placed('one', { node_state: 'draining' }), placed('two', { node: 'a' })]
  expect(await look(...rows)).toEqual(['one', 'two'])
  // The rows show the choice only at a later look, so the home does not choose again before.
  expect(await look(...rows)).toEqual([])
})

it('the home never replaces a node that the operator has named, and never chooses for another home', async () => {
  const look = homeWhere('c')
  const named = placed('one', { placement: 'named', node_state: 'draining' })
  expect(await look(named, placed('two', { home: 'c', node: 'c' }))).toEqual([])
})

it('the home chooses for two databases at a time, so that the loss of a node does not copy all at once', async () => {
  const look = homeWhere('c')
  const waiting = ['one', 'two', 'three', 'four'].map((id) => placed(id, { node: 'a', state: 'asked' }))
  expect(await look(...waiting)).toEqual(['one', 'two'])
  const copying = ['one', 'two'].map((id) => placed(id, { node: 'c', state: 'copying' }))
  vi.advanceTimersByTime(5_000)
  expect(await look(...copying, ...waiting.slice(2))).toEqual([])
  const whole = copying.map((row) => ({ ...row, state: 'following' as const }))
  expect(await look(...whole, ...waiting.slice(2))).toEqual(['three', 'four'])
})

it('the home chooses different nodes for the copies of a database, at one look or when one node is away', async () => {
  const look = homeWhere('a', 'b', 'c', 'd')
  const none = placed('one', { node: 'a', state: 'asked' })
  expect(await look(none, { ...none, slot: 2 })).toEqual(['one', 'one'])
  expect(look.picked).toEqual(['b', 'c'])
  const [first, second] = [placed('one', { node_state: 'draining' }), placed('one', { node: 'c', slot: 2 })]
  vi.advanceTimersByTime(5_000)
  expect(await look(first, second)).toEqual(['one'])
  expect(look.picked.at(-1)).toBe('d')
})
