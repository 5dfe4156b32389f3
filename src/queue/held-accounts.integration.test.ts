import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'

const T = Date.parse('2026-01-01T00:00:30Z')
const MINUTE = 60_000

describeOnSampledStore('an account that is held', (openStore) => {
  let clock: ManualClock
  let held: ReadonlySet<string> = new Set()
  const scene = setQueueScenes(openStore, {
    clock: () => {
      clock = new ManualClock(T)
      return clock
    },
    settings: { heldAccounts: () => held },
    tidy: async ({ client }) => {
      for (const { scheduleId } of await client.schedules.list()) await client.schedules.delete(scheduleId)
      await client.messages.cancel({ all: true })
    },
  })
  const setHeld = (isHeld: boolean): void => {
    held = new Set(isHeld ? [scene.service.accountId] : [])
    scene.service.queue.accountsChanged()
  }
  const idle = () =>
    waitFor(async () => (await scene.service.queue.rest()).isIdle, { what: 'the queue to have nothing to do' })
  const targets = () => scene.sink.received.map(({ target }) => target).sort()

  it('keeps back messages, retries, callbacks and fires, also after a restart, until it is released', async () => {
    const { client, sink } = scene
    const url = (path: string) => `${sink.url}${path}`
    // The schedule of the account fires each minute; its fires are skipped while it is held.
    const { scheduleId } = await client.schedules.create({ destination: url('/fire'), cron: '* * * * *' })
    sink.answer = ({ target }) => (target === '/retried' ? { status: 500 } : {})
    await client.publish({ url: url('/retried'), retries: 3, retryDelay: '60000', failureCallback: url('/never') })
    await scene.arrived(1)
    await idle()
    await client.publish({ url: url('/waiting'), delay: 90 })
    setHeld(true)
    await client.publish({ url: url('/fresh'), callback: url('/callback') })
    await client.publish({ url: url('/key'), flowControl: { key: 'k', parallelism: 1 } })
    await client.queue({ queueName: 'q' }).enqueue({ url: url('/queued') })
    for (let minute = 0; minute < 3; minute++) {
      clock.advance(MINUTE)
      await idle()
    }
    expect(targets()).toEqual(['/retried'])
    expect(await client.schedules.get(scheduleId)).toMatchObject({
      error: expect.stringContaining('the account was suspended'),
      nextScheduleTime: Date.parse('2026-01-01T00:04:00Z'),
    })

    await scene.restart()
    await idle()
    expect(targets()).toEqual(['/retried'])

    sink.answer = () => ({})
    setHeld(false)
    await scene.arrived(7)
    await idle()
    expect(targets()).toEqual(['/callback', '/fresh', '/key', '/queued', '/retried', '/retried', '/waiting'])

    clock.advance(MINUTE)
    await scene.arrived(8)
    expect(targets()).toContain('/fire')
    await waitFor(async () => (await scene.client.schedules.get(scheduleId)).nextScheduleTime === T + 4.5 * MINUTE, {
      what: 'the next fire',
    })
    expect(await scene.client.schedules.get(scheduleId)).not.toHaveProperty('error')
  })

  it('keeps back messages that are published and settled while it is held and released again and again', async () => {
    const { client, sink } = scene
    const total = 60
    for (let index = 0; index < total; index++) {
      setHeld(index % 3 !== 2)
      await client.publish({ url: `${sink.url}/${index}` })
    }
    setHeld(false)
    await scene.arrived(total)
    await idle()
    expect(new Set(targets()).size).toBe(total)
    expect(targets()).toHaveLength(total)
  })
})
