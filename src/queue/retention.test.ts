import { Client } from '@upstash/qstash'
import { expect, it } from 'vitest'
import { atCleanup } from '../../test/support/cleanup.js'
import { waitFor } from '../../test/support/wait-for.js'
import { yieldToEventLoop } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { silentLogger } from '../telemetry/index.js'
import { Retention } from './retention.js'
import { JumpingClock, startQueue } from './testing/harness.js'
import { startSink } from './testing/sink.js'

const SWEEP_EVERY_MS = 600_000
const DAY_MS = 86_400_000

describeOnSampledStore('retention', (openStore) => {
  const start = async (limits: { retentionMs?: number; retentionBytes?: number }) => {
    const clock = new ManualClock(Date.now())
    const sink = await startSink()
    sink.answer = ({ target }) => (target === '/dead' ? { status: 500 } : { body: 'r'.repeat(10_000) })
    const service = await startQueue({ store: await openStore(), clock, ...limits })
    atCleanup(async () => {
      await service.stop()
      await sink.close()
    })
    const client = new Client({ baseUrl: service.url, token: service.token, retry: false })
    const publish = async (path: string, more: { delay?: number } = {}): Promise<string> => {
      // Messages of the same millisecond are listed in any order.
      clock.advance(1)
      const { messageId } = await client.publish({
        url: sink.url + path,
        body: 'b'.repeat(10_000),
        retries: 0,
        ...more,
      })
      return messageId
    }
    const ended = (messageId: string) =>
      waitFor(
        async () => {
          const { logs } = await client.logs({ filter: { messageId } })
          return logs.some(({ state }) => state === 'DELIVERED' || state === 'FAILED')
        },
        { what: 'the end of a message' },
      )
    /** Advances the clock sweep by sweep. */
    const sweepUntil = (condition: () => Promise<boolean>) =>
      waitFor(
        async () => {
          clock.advance(SWEEP_EVERY_MS)
          return condition()
        },
        { what: 'the sweep' },
      )
    const kept = async (): Promise<string[]> => {
      const { logs } = await client.logs({ filter: { state: 'CREATED' } })
      return logs.map(({ messageId }) => messageId).reverse()
    }
    const dead = async () => (await client.dlq.listMessages()).messages.map(({ messageId }) => messageId)
    return { clock, publish, ended, sweepUntil, kept, dead }
  }

  it('keeps the newest ended messages and dead letters that fit, and all pending ones', async () => {
    // A message and its response take more than 20,000 bytes, a dead letter more than 10,000.
    const { publish, ended, sweepUntil, kept, dead } = await start({ retentionBytes: 55_000 })
    const waiting = await publish('/', { delay: 86_400 })
    const [first, second, third] = [await publish('/dead'), await publish('/'), await publish('/dead')]
    const [fourth, fifth] = [await publish('/'), await publish('/')]
    for (const messageId of [first, second, third, fourth, fifth]) await ended(messageId)
    expect(await kept()).toEqual([waiting, first, second, third, fourth, fifth])
    await sweepUntil(async () => (await kept()).length === 4)
    expect(await kept()).toEqual([waiting, third, fourth, fifth])
    expect(await dead()).toEqual([third])
  })

  it('deletes nothing that fits and is young, and all ended messages when they are old', async () => {
    const { clock, publish, ended, sweepUntil, kept } = await start({ retentionMs: DAY_MS })
    const old = await publish('/')
    const waiting = await publish('/', { delay: 2 * 86_400 })
    await ended(old)
    clock.advance(DAY_MS - SWEEP_EVERY_MS)
    const young = await publish('/')
    await ended(young)
    expect(await kept()).toEqual([old, waiting, young])
    await sweepUntil(async () => !(await kept()).includes(old))
    expect(await kept()).toEqual([waiting, young])
  })
})

it('retention deletes nothing by age for a day after the clock was set ahead by days, unless it is set back', async () => {
  const steady = new ManualClock(Date.now())
  const clock = new JumpingClock(steady)
  let sweeps = 0
  const sweep = async () => void sweeps++
  const retention = new Retention({ name: 'messages', clock, logger: silentLogger, keepMs: DAY_MS, sweep })
  const sweepsIn = async (ms: number) => {
    const before = sweeps
    for (let passed = 0; passed < ms; passed += SWEEP_EVERY_MS) {
      steady.advance(SWEEP_EVERY_MS)
      await yieldToEventLoop()
    }
    return sweeps - before
  }
  await retention.start()
  expect(await sweepsIn(SWEEP_EVERY_MS)).toBe(1)
  clock.jump(3 * DAY_MS)
  expect(await sweepsIn(DAY_MS)).toBe(0)
  expect(await sweepsIn(2 * SWEEP_EVERY_MS)).toBe(2)
  clock.jump(3 * DAY_MS)
  expect(await sweepsIn(SWEEP_EVERY_MS)).toBe(0)
  clock.jump(-3 * DAY_MS)
  expect(await sweepsIn(SWEEP_EVERY_MS)).toBe(1)
  await retention.stop()
})
