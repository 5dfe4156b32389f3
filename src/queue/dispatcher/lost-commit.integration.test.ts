import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Store } from '../../store/index.js'
import { type CuttableProxy, cuttableProxy } from '../../store/testing/cuttable-proxy.js'
import { describeOnStore } from '../../store/testing/index.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'
import { type Sink, startSink } from '../testing/sink.js'

const OUTCOME_UNKNOWN = 503

describeOnStore('postgres', 'a queue whose commits are never confirmed', (openStore, on) => {
  let store: Store
  let proxy: CuttableProxy
  let sink: Sink
  let clock: ManualClock
  let service: QueueUnderTest
  let accounts = 0

  beforeAll(async () => {
    const place = await on.newPlace()
    const url = new URL(place.location)
    proxy = await cuttableProxy(Number(url.port))
    url.port = String(proxy.port)
    store = await openStore({ ...place, location: url.href })
  })
  afterAll(() => proxy.close())
  beforeEach(async () => {
    clock = new ManualClock(Date.now())
    sink = await startSink()
    service = await startQueue({ store, clock, accountId: `acc_${++accounts}`, mayHaveStrays: true })
  })
  afterEach(async () => {
    await fetch(`${service.url}/v2/messages`, { method: 'DELETE', headers: service.auth })
    let isStopped = false
    const stopping = service.stop().then(() => (isStopped = true))
    await passTimeUntil(() => isStopped, 'the stop')
    await stopping
    await sink.close()
  })

  /** Advances the clock by half a second at each check. */
  const passTimeUntil = (condition: () => boolean, what: string) =>
    waitFor(
      () => {
        clock.advance(500)
        return condition()
      },
      { what },
    )
  const send = (target: string, headers: Record<string, string> = {}) =>
    fetch(service.url + target, { method: 'POST', headers: { ...service.auth, ...headers }, body: 'x' })
  const call = (method: string, target: string, body?: object) =>
    fetch(service.url + target, { method, headers: service.auth, ...(body && { body: JSON.stringify(body) }) })
  const paths = (): string[] => sink.received.map(({ target }) => target).sort()

  it('sends the messages that were published', async () => {
    const lost = proxy.loseNextCommit()
    expect((await send(`/v2/publish/${sink.url}/a`)).status).toBe(OUTCOME_UNKNOWN)
    await lost
    await passTimeUntil(() => sink.received.length > 0, 'the message')
    expect(paths()).toEqual(['/a'])
  })

  it('sends the callback of a message whose outcome was stored', async () => {
    let lost: Promise<void> | undefined
    sink.answer = () => {
      lost ??= proxy.loseNextCommit()
      return { status: 200 }
    }
    await send(`/v2/publish/${sink.url}/a`, { 'Upstash-Callback': `${sink.url}/callback` })
    await passTimeUntil(() => sink.received.length > 1, 'the callback')
    await lost
    expect(paths()).toEqual(['/a', '/callback'])
  })

  it('continues with a queue whose next turn was given', async () => {
    let lost: Promise<void> | undefined
    sink.answer = ({ target }) => {
      if (target === '/1') lost = proxy.loseNextCommit()
      return { status: 200 }
    }
    const items = [1, 2, 3].map((number) => ({ destination: `${sink.url}/${number}`, queue: 'q' }))
    await fetch(`${service.url}/v2/batch`, { method: 'POST', headers: service.auth, body: JSON.stringify(items) })
    await passTimeUntil(() => sink.received.length > 2, 'the last message of the queue')
    await lost
    expect(paths()).toEqual(['/1', '/2', '/3'])
  })

  it('sends the next attempt of a message', async () => {
    let lost: Promise<void> | undefined
    sink.answer = () => {
      if (lost) return { status: 200 }
      lost = proxy.loseNextCommit()
      return { status: 500 }
    }
    await send(`/v2/publish/${sink.url}/a`, { 'Upstash-Retry-Delay': '1000' })
    await passTimeUntil(() => sink.received.length > 1, 'the next attempt')
    await lost
    expect(sink.received.map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '1'])
  })

  it('does not send messages that were cancelled', async () => {
    const response = await send(`/v2/publish/${sink.url}/cancelled`, { 'Upstash-Delay': '30s' })
    const { messageId } = (await response.json()) as { messageId: string }
    const lost = proxy.loseNextCommit()
    expect((await call('DELETE', `/v2/messages/${messageId}`)).status).toBe(OUTCOME_UNKNOWN)
    await lost
    clock.advance(0)
    await waitFor(() => service.queue.load.held === 0, { what: 'the message to be dropped' })
    await send(`/v2/publish/${sink.url}/later`, { 'Upstash-Delay': '40s' })
    await passTimeUntil(() => sink.received.length > 0, 'the later message')
    expect(paths()).toEqual(['/later'])
  })

  it('applies the limits that were set for a flow-control key', async () => {
    await send(`/v2/publish/${sink.url}/later`, { 'Upstash-Flow-Control-Key': 'k', 'Upstash-Delay': '1h' })
    const lost = proxy.loseNextCommit()
    expect((await call('POST', '/v2/flowControl/k/pause')).status).toBe(OUTCOME_UNKNOWN)
    await lost
    await passTimeUntil(() => service.queue.flowHold(`acc_${accounts}`, 'k') !== undefined, 'the pause')
  })

  it('fires a schedule that was created, and sends the messages that a fire published', async () => {
    const created = proxy.loseNextCommit()
    const headers = { 'Upstash-Cron': '* * * * *' }
    expect((await send(`/v2/schedules/${sink.url}/fire`, headers)).status).toBe(OUTCOME_UNKNOWN)
    await created
    const fired = proxy.loseNextCommit()
    await passTimeUntil(() => sink.received.length > 0, 'the first fire')
    await fired
    const [schedule] = (await (await call('GET', '/v2/schedules')).json()) as { scheduleId: string }[]
    await call('DELETE', `/v2/schedules/${schedule?.scheduleId}`)
  })

  it('sends a message to each endpoint of a URL group', async () => {
    const endpoints = ['a', 'b'].map((name) => ({ name, url: `${sink.url}/${name}` }))
    await call('POST', '/v2/topics/both/endpoints', { endpoints })
    const lost = proxy.loseNextCommit()
    expect((await send('/v2/publish/both')).status).toBe(OUTCOME_UNKNOWN)
    await lost
    await passTimeUntil(() => sink.received.length > 1, 'both messages')
    expect(paths()).toEqual(['/a', '/b'])
  })

  it('gives the turns of a queue that was resumed', async () => {
    await call('POST', '/v2/queues', { queueName: 'paused', parallelism: 2 })
    await call('POST', '/v2/queues/paused/pause')
    for (const number of [1, 2, 3]) await send(`/v2/enqueue/paused/${sink.url}/${number}`)
    const lost = proxy.loseNextCommit()
    expect((await call('POST', '/v2/queues/paused/resume')).status).toBe(OUTCOME_UNKNOWN)
    await lost
    await passTimeUntil(() => sink.received.length > 2, 'all messages of the queue')
    expect(paths()).toEqual(['/1', '/2', '/3'])
  })
})
