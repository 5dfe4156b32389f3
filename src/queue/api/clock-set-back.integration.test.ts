import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { JumpingClock } from '../testing/harness.js'
import { setQueueScenes } from '../testing/scene.js'

const HOUR = 3_600_000

describeOnSampledStore('after the clock was set back', (openStore) => {
  let clock: ManualClock
  let timeOfDay: JumpingClock
  const scene = setQueueScenes(openStore, {
    clock: () => {
      clock = new ManualClock(Date.parse('2026-01-01T12:00:00Z'))
      timeOfDay = new JumpingClock(clock)
      return timeOfDay
    },
    tidy: ({ client }) => client.messages.cancel({ all: true }),
  })
  /** Advances the clock in steps until this many deliveries have come. Answers the milliseconds that took. */
  const passUntilArrived = async (count: number): Promise<number> => {
    const from = clock.now()
    await waitFor(
      () => {
        if (scene.sink.received.length < count) clock.advance(5_000)
        return scene.sink.received.length >= count
      },
      { what: `${count} deliveries` },
    )
    return clock.now() - from
  }

  it.each([
    ['while the server runs', async () => {}],
    ['over a restart', () => scene.restart()],
  ])('a delay that was set while it was ahead has its full length and no more, %s', async (_how, between) => {
    timeOfDay.jump(365 * 24 * HOUR)
    await scene.client.publish({ url: scene.sink.url, delay: '3m' })
    await scene.client.queue({ queueName: 'mails' }).enqueue({ url: scene.sink.url, delay: '3m' })
    clock.advance(30_000)
    timeOfDay.jump(-365 * 24 * HOUR)
    await between()
    const passedMs = await passUntilArrived(2)
    // Never early; late at most by the interval of clock checks, or by the time since the clock was last seen ahead.
    expect(passedMs).toBeGreaterThanOrEqual(2 * 60_000)
    expect(passedMs).toBeLessThan(6 * 60_000)
  })

  it.each([
    ['while the server runs', async () => {}],
    ['over a restart', () => scene.restart()],
  ])('a deduplication id that was taken while it was ahead is free after its window, %s', async (_how, between) => {
    const publish = async () =>
      (await scene.client.publish({ url: scene.sink.url, deduplicationId: 'one' })) as { deduplicated?: boolean }
    timeOfDay.jump(HOUR)
    expect((await publish()).deduplicated).toBeUndefined()
    await passUntilArrived(1)
    timeOfDay.jump(-HOUR)
    await between()
    clock.advance(5_000)
    expect((await publish()).deduplicated).toBe(true)
    const isFree = async () => (await publish()).deduplicated === undefined
    const from = clock.now()
    while (!(await isFree()) && clock.now() - from < HOUR) clock.advance(60_000)
    expect(clock.now() - from).toBeGreaterThan(8 * 60_000)
    expect(clock.now() - from).toBeLessThan(13 * 60_000)
    await passUntilArrived(2)
  })

  it('a requested time of day stays as it is', async () => {
    timeOfDay.jump(120_000)
    const notBefore = Math.floor((timeOfDay.now() + 60_000) / 1000)
    await scene.client.publish({ url: scene.sink.url, notBefore })
    timeOfDay.jump(-120_000)
    await scene.restart()
    await passUntilArrived(1)
    expect(timeOfDay.now()).toBeGreaterThanOrEqual(notBefore * 1000)
  })

  it('a retry that was scheduled while it was ahead comes on time', async () => {
    scene.sink.answer = () => ({ status: 500 })
    await scene.client.publish({ url: scene.sink.url, retries: 1, retryDelay: '180000', delay: '1m' })
    timeOfDay.jump(HOUR)
    await passUntilArrived(1)
    const attempts = async () => (await scene.client.logs({ filter: { state: 'RETRY' } })).logs.length
    await waitFor(async () => (await attempts()) === 1, { what: 'the outcome' })
    scene.sink.answer = () => ({ status: 200 })
    timeOfDay.jump(-HOUR)
    const passedMs = await passUntilArrived(2)
    expect(passedMs).toBeGreaterThanOrEqual(2 * 60_000)
    expect(passedMs).toBeLessThan(6 * 60_000)
  })

  it('earlier messages can be cancelled by id', async () => {
    const { messageId } = await scene.client.publish({ url: scene.sink.url, delay: '2h' })
    timeOfDay.jump(-HOUR)
    expect(await scene.client.messages.cancel(messageId)).toEqual({ cancelled: 1 })
    const other = await scene.client.publish({ url: scene.sink.url, delay: '2h' })
    timeOfDay.jump(-HOUR)
    expect(await scene.client.messages.cancel([other.messageId])).toEqual({ cancelled: 1 })
  })

  it('a queue can be deleted with its messages', async () => {
    const queue = scene.client.queue({ queueName: 'mails' })
    await queue.upsert({ parallelism: 1, paused: true })
    for (let n = 0; n < 3; n++) await queue.enqueue({ url: scene.sink.url })
    timeOfDay.jump(-HOUR)
    expect(await scene.ask('DELETE', '/v2/queues/mails')).toEqual({ status: 200, answer: { cancelled: 3 } })
  })
})
