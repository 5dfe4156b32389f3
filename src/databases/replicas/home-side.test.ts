import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import { HomeSide } from './home-side.js'
import { BEAT_EVERY_MS, type Beat } from './messages.js'

const row = (regions: readonly string[]) =>
  ({ database_id: 'db', plan: 'payg', primary_region: 'us-east-1', read_regions: JSON.stringify(regions) }) as never

/** A node drops beats with a number that it has seen, so a home must not start again at 1. */
it('beats to a node keep their numbering after its last replica has gone', async () => {
  const clock = new ManualClock(0)
  const beats: Beat[] = []
  const ask = async (_topic: string, beat: Beat) => {
    beats.push(beat)
    return [{ answer: { stamp: { monotonicMs: 0, wallMs: 0 }, copies: [], leaving: [] } }]
  }
  const home = new HomeSide({
    clock,
    plans: DEFAULT_PLANS,
    node: 'a',
    region: 'us-east-1',
    logger: { info: () => undefined },
    cluster: { ask, peers: [{ incarnation: 2, name: 'b', state: 'live' }], onNodeGone: () => undefined },
    placement: { homeFor: async () => 'b', regionsOfPeers: async () => new Map() },
    store: { run: async () => [] },
    fleet: { observe: () => [] },
    sleep: { isAwake: () => true },
    directory: { follow: () => undefined, has: () => true },
  } as never)
  const until = (isWanted: boolean) =>
    waitFor(
      () => {
        clock.advance(BEAT_EVERY_MS)
        return beats.at(-1)?.wanted.length === (isWanted ? 1 : 0)
      },
      { what: 'a beat' },
    )
  home.follow(row(['eu-west-1']))
  home.start()
  await until(true)
  home.follow(row([]))
  await until(false)
  home.follow(row(['eu-west-1']))
  await until(true)
  await home.stop()
  const numbers = beats.map(({ sequence }) => sequence)
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
})
