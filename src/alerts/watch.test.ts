import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { silentLogger } from '../telemetry/index.js'
import * as sources from './transactions/alerts-sources.js'
import { AlertWatch } from './watch.js'

it('collects the events of an account also if those of another one cannot be stored, a few accounts at a time', async () => {
  const good = Array.from({ length: 24 }, (_, index) => `good ${index}`)
  const accounts = ['bad', ...good].map((accountId) => ({ accountId, createdAt: 1 }))
  const collected: string[] = []
  const sizes: number[] = []
  const run = async (operation: unknown, args: sources.Waiting & { watched: unknown }) => {
    if (operation === sources.accounts) return accounts
    if (operation === sources.waiting) {
      const some = args.watched as unknown as readonly sources.Watched[]
      sizes.push(some.length)
      return some.map((watched) => ({ watched, source: 'dead_letter' }))
    }
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
  expect([collected, sizes]).toEqual([good, [10, 10, 5]])
})
