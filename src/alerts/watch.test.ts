import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { silentLogger } from '../telemetry/index.js'
import * as history from './transactions/alerts-history.js'
import * as sources from './transactions/alerts-sources.js'
import { AlertWatch } from './watch.js'

function watchOf(run: (operation: unknown, args: never) => Promise<unknown>) {
  const clock = new ManualClock()
  const watch = new AlertWatch({
    store: { run } as unknown as Store,
    clock,
    logger: silentLogger,
    link: '',
    queue: { offer: () => undefined },
    problems: { all: () => [] },
    sources: {
      databases: () => [],
      disk: async () => ({ freeBytes: 1, totalBytes: 1 }),
      certificateExpiresAt: () => 0,
    },
  })
  return { clock, watch }
}

it('the watch stores the events of an account also if those of another one fail, a few accounts at a time', async () => {
  const good = Array.from({ length: 24 }, (_, index) => `good ${index}`)
  const accounts = ['bad', ...good].map((accountId) => ({ accountId, createdAt: 1 }))
  const collected: string[] = []
  const sizes: number[] = []
  const { clock, watch } = watchOf(async (operation, args: { watched: unknown; sources: string[] }) => {
    if (operation === sources.accounts) return accounts
    if (operation === sources.waiting) {
      if (args.sources.includes('backup_failed')) return []
      const some = args.watched as readonly sources.Watched[]
      sizes.push(some.length)
      return some.map((watched) => ({ watched, source: 'dead_letter' }))
    }
    if (operation !== sources.collect) return []
    const { accountId } = args.watched as sources.Watched
    if (accountId === 'bad') throw new Error('the test says so')
    collected.push(accountId)
    return false
  })
  await watch.start()
  clock.advance(5_000)
  await watch.looked
  await watch.stop()
  expect([collected, sizes]).toEqual([good, [10, 10, 5]])
})

it('the watch looks for failed backups of every account, however many there are', async () => {
  const watched = Array.from({ length: 150 }, (_, at) => ({ accountId: `a${at}`, createdAt: 1 }))
  const looked = new Set<string>()
  const { clock, watch } = watchOf(async (operation, args: { watched: sources.Watched[]; sources: string[] }) => {
    if (operation === sources.accounts) return watched
    if (operation !== sources.waiting || !args.sources.includes('backup_failed')) return []
    for (const { accountId } of args.watched) looked.add(accountId)
    return []
  })
  await watch.start()
  const until = clock.now() + 600_000
  await waitFor(
    async () => {
      clock.advance(5_000)
      await watch.looked
      return looked.size === watched.length || clock.now() > until
    },
    { what: 'looks for ten minutes' },
  )
  await watch.stop()
  expect(looked.size).toBe(150)
})

it('the watch deletes no alerts for their age for a day after the clock was set ahead by days', async () => {
  const sweptAt: number[] = []
  const { clock, watch } = watchOf(async (operation) => {
    if (operation !== history.sweep) return []
    sweptAt.push(clock.now())
    return false
  })
  await watch.start()
  clock.jump(40 * 86_400_000)
  const start = clock.now()
  for (let hour = 0; hour < 30; hour++) {
    clock.advance(3_600_000)
    await watch.looked
  }
  await watch.stop()
  expect(sweptAt.length).toBeGreaterThan(0)
  expect(Math.min(...sweptAt) - start).toBeGreaterThanOrEqual(86_400_000)
})
