import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { HomeportError } from '../contract/errors/errors.js'
import { silentLogger } from '../telemetry/index.js'
import { Losses, type LossesDeps } from './losses.js'

/** Losses of one database, on a store that fails while `isAway()` is true, and keeps the written problems. */
function lossesOver(isAway: () => boolean) {
  const clock = new ManualClock()
  const written: (string | null)[] = []
  let asked = 0
  const run = async (_operation: unknown, { problem }: { problem: string | null }) => {
    asked++
    if (isAway()) throw new HomeportError('store_unavailable', {})
    written.push(problem)
  }
  const row = { database_id: 'db', account_id: 'a', name: 'shop' }
  const losses = new Losses({
    clock,
    logger: silentLogger,
    store: { run },
    isAwake: () => false,
    directory: { rowOf: () => row, follow: () => () => undefined },
    problems: { report: () => undefined, resolve: () => undefined },
    fleet: {},
    engines: {},
  } as unknown as LossesDeps)
  return { losses, clock, written, asked: () => asked }
}

/** Lets the handlers of settled promises run. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

it('the newest loss of a database is stored once the store is back', async () => {
  let isAway = true
  const { losses, clock, written } = lossesOver(() => isAway)
  losses.note('db', { kind: 'missing', what: 'its log is missing' })
  await turn()
  losses.note('db', { kind: 'unreadable', what: 'its log is damaged' })
  await turn()
  clock.advance(10_000)
  await turn()
  expect(written).toEqual([])
  isAway = false
  clock.advance(10_000)
  await turn()
  expect(written).toEqual([expect.stringContaining('its log is damaged')])
  expect(clock.pendingTimers).toBe(0)
})

it('a loss that could not be stored is not tried again once the server stops', async () => {
  const { losses, clock, asked } = lossesOver(() => true)
  losses.note('db', { kind: 'missing', what: 'its log is missing' })
  await turn()
  await losses.stop()
  clock.advance(60_000)
  await turn()
  expect(asked()).toBe(1)
})
