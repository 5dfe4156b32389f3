import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'

const BEFORE_MIDNIGHT = Date.parse('2026-03-01T23:50:30Z')
const MINUTE = 60_000

describeOnSampledStore('a limit of messages a day', (openStore) => {
  let clock: ManualClock
  const scene = setQueueScenes(openStore, {
    clock: () => {
      clock = new ManualClock(BEFORE_MIDNIGHT)
      return clock
    },
    settings: { dailyMessages: 4 },
    tidy: async ({ client }) => {
      for (const { scheduleId } of await client.schedules.list()) await client.schedules.delete(scheduleId)
      await client.messages.cancel({ all: true })
    },
  })
  const publish = (more: object = {}) => scene.client.publish({ url: `${scene.sink.url}/x`, delay: '7d', ...more })
  const daily = { name: 'QstashDailyRatelimitError' }

  it('counts what is stored, once, also across a restart and at the same time, until midnight', async () => {
    await publish({ deduplicationId: 'one' })
    await publish({ deduplicationId: 'one' })
    await scene.restart()
    const many = await Promise.allSettled(Array.from({ length: 8 }, () => publish()))
    expect(many.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    await expect(publish()).rejects.toMatchObject({
      ...daily,
      limit: '4',
      remaining: '0',
      reset: String(Date.parse('2026-03-02T00:00:00Z') / 1000),
    })
    // What duplicates a message is no new one.
    await publish({ deduplicationId: 'one' })
    clock.advance(10 * MINUTE)
    await publish()
  })

  it('counts publications that are stored together as if each were alone', async () => {
    const given = ['a', 'a', undefined, 'b', undefined, 'b', undefined, undefined]
    const all = await Promise.allSettled(given.map((deduplicationId) => publish({ deduplicationId })))
    const stored = all.flatMap((each) => (each.status === 'fulfilled' ? [each.value as { messageId: string }] : []))
    expect(new Set(stored.map(({ messageId }) => messageId)).size).toBe(4)
    for (const each of all)
      if (each.status === 'rejected') expect(each.reason).toMatchObject({ ...daily, remaining: '0' })
    await expect(publish()).rejects.toMatchObject(daily)
    // The next day they are published together, without a refusal.
    clock.advance(10 * MINUTE)
    const next = await Promise.all(
      ['c', undefined, 'c', undefined, 'd'].map((deduplicationId) => publish({ deduplicationId })),
    )
    expect(new Set(next.map(({ messageId }) => messageId)).size).toBe(4)
    await expect(publish()).rejects.toMatchObject(daily)
  })

  it('begins a day once, also when the clock is set back over midnight', async () => {
    clock.advance(10 * MINUTE)
    for (let count = 0; count < 3; count++) await publish()
    clock.advance(-10 * MINUTE)
    await publish()
    await expect(publish()).rejects.toMatchObject(daily)
    clock.advance(10 * MINUTE)
    await expect(publish()).rejects.toMatchObject(daily)
    // A clock that was wrong by days holds nobody up.
    clock.advance(-3 * 1_440 * MINUTE)
    await publish()
  })

  it('refuses a whole request, with each endpoint of a URL group as a message', async () => {
    const { client, sink } = scene
    const endpoints = ['a', 'b', 'c'].map((name) => ({ name, url: `${sink.url}/${name}` }))
    await client.urlGroups.addEndpoints({ name: 'all', endpoints })
    await client.publish({ urlGroup: 'all', delay: '7d' })
    await expect(client.publish({ urlGroup: 'all', delay: '7d' })).rejects.toMatchObject(daily)
    const two = [1, 2].map((part) => ({ url: `${sink.url}/${part}`, delay: '7d' as const }))
    await expect(client.batch(two)).rejects.toMatchObject({ ...daily, remaining: '1' })
    await publish()
  })

  it('refuses the fires of schedules, which say so', async () => {
    const { client, sink } = scene
    for (let count = 0; count < 4; count++) await publish()
    const { scheduleId } = await client.schedules.create({
      destination: `${sink.url}/s`,
      cron: '* * * * *',
      delay: '7d',
    })
    clock.advance(MINUTE)
    await expect
      .poll(async () => (await client.schedules.get(scheduleId)) as object)
      .toMatchObject({ error: expect.stringContaining('4 messages a day') })
  })
})
