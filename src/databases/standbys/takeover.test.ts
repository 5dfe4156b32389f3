import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import * as databases from '../transactions/databases.js'
import * as promotions from '../transactions/promotions.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import type { CopySide } from './copy-side.js'
import type { StandbysDeps } from './deps.js'
import { Takeover } from './takeover.js'

/** What the node of a standby does when the home is dead: it stores where its copy stands, and asks to become the home. */

const PLACE = { replid: 'r', offset: 100 }

const lost: PlacedStandby = {
  database_id: 'db',
  slot: 1,
  name: 'db',
  home: 'a',
  node: 'b',
  placement: 'auto',
  mode: 'async',
  state: 'following',
  epoch: 1,
  now_epoch: 1,
  home_state: 'dead',
  home_incarnation: 7,
  node_state: 'live',
  complete_until: 1,
  home_offset: 120,
  standby_offset: 90,
  problem: null,
  asked_at: 0,
  stand_life: null,
  stand_replid: null,
  stand_offset: null,
}

interface Found {
  /** The last position that the copy has reported to the home; undefined: the copy is not whole. */
  reported?: typeof PLACE | undefined
  /** The position of the engine; undefined: it does not answer. */
  readonly place?: typeof PLACE | undefined
  /** The answers of the store to the requests for promotion. */
  readonly answers?: (promotions.Promoted | HomeportError)[]
}

/** A node `b` whose store and copy record the calls to them. */
function nodeB(found: Found) {
  const { place, answers = [] } = found
  const [clock, noted] = [new ManualClock(), [] as string[]]
  const run = async (operation: unknown, args: { place?: typeof PLACE }) => {
    if (operation === databases.find) return { account_id: 'acc', home: 'a' }
    if (operation === promotions.recordPosition) return void noted.push(`stand ${args.place?.offset ?? 'none'}`)
    noted.push('promote')
    const answer = answers.shift()
    if (answer instanceof HomeportError) throw answer
    return answer
  }
  const position = () => (place ? Promise.resolve(place) : new Promise(() => undefined))
  const deps = {
    node: 'b',
    clock,
    store: { run },
    fleet: { replicationWith: async () => ({ position }) },
    logger: { error: (_: string, { reason }: { reason: string }) => noted.push(reason), warn: () => undefined },
    take: async () => void noted.push('serves'),
    announce: async () => undefined,
  }
  const copies = {
    isWhole: () => found.reported !== undefined,
    seal: () => {
      noted.push('seal')
      return found.reported
    },
    promisedFor: () => 0,
    cut: () => noted.push('cut'),
    releaseFiles: async () => undefined,
    unseal: () => noted.push('unseal'),
  }
  const takeover = new Takeover(deps as unknown as StandbysDeps, copies as unknown as CopySide)
  const until = (event: string) => waitFor(() => noted.includes(event), { what: event })
  return { clock, noted, takeover, until }
}

it('a node whose copy is not whole stores that it cannot take over', async () => {
  const { noted, takeover, until } = nodeB({})
  takeover.consider([lost])
  await until('this node was restarted, or its copy was not complete')
  expect(noted.slice(0, 2)).toEqual(['seal', 'stand none'])
  await takeover.stop()
})

it('a node whose copy is not whole tries again only with another copy, or after another life of the home', async () => {
  const found: Found = { place: PLACE, answers: [{ kind: 'promoted' }] }
  const { noted, takeover, until } = nodeB(found)
  const tries = () => noted.filter((event) => event === 'seal').length
  const considered = async (row: PlacedStandby) => {
    takeover.consider([row])
    await takeover.idle()
  }
  for (let look = 0; look < 3; look++) await considered(lost)
  expect(tries()).toBe(1)
  for (let look = 0; look < 3; look++) await considered({ ...lost, home_incarnation: 8 })
  expect(tries()).toBe(2)
  found.reported = PLACE
  takeover.consider([{ ...lost, home_incarnation: 8 }])
  await until('serves')
  await takeover.stop()
})

it('a node whose engine does not answer stores that it cannot take over', async () => {
  const { clock, noted, takeover, until } = nodeB({ reported: PLACE })
  takeover.consider([lost])
  await until('cut')
  await waitFor(() => clock.pendingTimers > 0, { what: 'the wait for the engine' })
  clock.advance(5_000)
  await until('the engine of the copy does not answer')
  expect(noted).toEqual(['seal', 'cut', 'stand none', 'the engine of the copy does not answer'])
  await takeover.stop()
})

it('a node whose copy has lost writes stores that it cannot take over', async () => {
  const { noted, takeover, until } = nodeB({ reported: { ...PLACE, offset: 101 }, place: PLACE })
  takeover.consider([lost])
  await until('unseal')
  expect(noted.slice(0, 4)).toEqual(['seal', 'cut', 'stand none', 'unseal'])
  await takeover.stop()
})

it('a node stores its position once, and asks for the promotion until another one has it, which it follows', async () => {
  const waits = { kind: 'waits', why: 'c' } as const
  const { clock, noted, takeover, until } = nodeB({
    reported: PLACE,
    place: PLACE,
    answers: [waits, waits, { kind: 'late' }],
  })
  takeover.consider([lost])
  for (let asked = 1; asked < 3; asked++) {
    await waitFor(() => noted.filter((one) => one === 'promote').length === asked, { what: 'the promotion' })
    await waitFor(() => clock.pendingTimers > 1, { what: 'the pause' })
    clock.advance(500)
  }
  await until('unseal')
  expect(noted).toEqual(['seal', 'cut', 'stand 100', 'promote', 'promote', 'promote', 'unseal'])
  await takeover.stop()
})

it('a node asks again when the answer to the promotion is lost, until it knows whether it is the home', async () => {
  const { clock, noted, takeover, until } = nodeB({
    reported: PLACE,
    place: PLACE,
    answers: [
      new HomeportError('store_outcome_unknown', {}),
      new HomeportError('store_unavailable', {}),
      { kind: 'promoted' },
    ],
  })
  takeover.consider([lost])
  for (let asked = 1; asked < 3; asked++) {
    await waitFor(() => noted.filter((one) => one === 'promote').length === asked, { what: 'the promotion' })
    await waitFor(() => clock.pendingTimers > 1, { what: 'the pause' })
    clock.advance(500)
  }
  await until('serves')
  expect(noted).toEqual(['seal', 'cut', 'stand 100', 'promote', 'promote', 'promote', 'serves'])
  await takeover.stop()
})

it('a node stores nothing when the home has come back, and its copy follows the home again', () => {
  const { noted, takeover } = nodeB({ reported: PLACE, place: PLACE })
  takeover.consider([{ ...lost, home_state: 'live' }])
  expect(noted).toEqual(['unseal'])
})
