import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { silentLogger } from '../telemetry/index.js'
import * as sources from './transactions/alerts-sources.js'
import { AlertWatch } from './watch.js'

it('collects the events of an account also if those of another one cannot be stored', async () => {
  const watched = ['bad', 'good'].map((accountId) => ({ accountId, createdAt: 1 }))
  const waiting = watched.map((one) => ({ watched: one, source: 'dead_letter' }))
  const collected: string[] = []
  const run = async (operation: unknown, args: sources.Waiting) => {
    if (operation === sources.accounts) return watched
    if (operation === sources.waiting) return waiting
    if (operation !== sources.collect) return []
    if (args.watched.accountId === 'bad') throw new Error('the test says so')
    collected.push(args.watched.accountId)
    return false
  }
  const clock = new ManualClock()
  const watch = new AlertWatch({
    ...{ store: { run } as unknown as Store, clock, logger: silentLogger, link: '' },
    queue: { offer: () => undefined },
    problems: { all: () => [] },
    sources: {
      databases: () => [],
      disk: async () => ({ freeBytes: 1, totalBytes: 1 }),
      certificateExpiresAt: () => 0,
    },
  })
  await watch.start()
  clock.advance(5_000)
  await watch.looked
  await watch.stop()
  expect(collected).toEqual(['good'])
})
