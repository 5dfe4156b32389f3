import { expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { JumpingClock } from '../testing/jumping-clock.js'
import { setQueueScenes } from '../testing/scene.js'

const HOUR = 3_600_000

describeOnEveryStore('when the clock was set back', (openStore) => {
  let timeOfDay: JumpingClock
  const scene = setQueueScenes(openStore, {
    clock: () => {
      timeOfDay = new JumpingClock(new ManualClock(Date.parse('2026-01-01T12:00:00Z')))
      return timeOfDay
    },
  })

  it('what was published before can be canceled by its id', async () => {
    const { messageId } = await scene.client.publish({ url: scene.sink.url, delay: '2h' })
    timeOfDay.jump(-HOUR)
    expect(await scene.client.messages.cancel(messageId)).toEqual({ cancelled: 1 })
    const other = await scene.client.publish({ url: scene.sink.url, delay: '2h' })
    timeOfDay.jump(-HOUR)
    expect(await scene.client.messages.cancel([other.messageId])).toEqual({ cancelled: 1 })
  })

  it('a queue can be deleted with what is in it', async () => {
    const queue = scene.client.queue({ queueName: 'mails' })
    await queue.upsert({ parallelism: 1, paused: true })
    for (let n = 0; n < 3; n++) await queue.enqueue({ url: scene.sink.url })
    timeOfDay.jump(-HOUR)
    expect(await scene.ask('DELETE', '/v2/queues/mails')).toEqual({ status: 200, answer: { cancelled: 3 } })
  })
})
