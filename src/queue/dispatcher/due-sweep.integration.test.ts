import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { newId } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { QueueMeter } from '../../telemetry/index.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'
import { type Sink, startSink } from '../testing/sink.js'
import * as messages from '../transactions/messages.js'
import { settle } from '../transactions/messages-settle.js'

describeOnEveryStore('the due sweep', (openStore) => {
  let store: Store
  let sink: Sink
  let clock: ManualClock
  let meter: QueueMeter
  let service: QueueUnderTest
  let accounts = 0
  let operations: string[]

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(async () => {
    sink = await startSink()
    clock = new ManualClock(Date.now())
    meter = new QueueMeter()
    operations = []
    accounts++
  })
  afterEach(async () => {
    await fetch(`${service.url}/v2/messages`, { method: 'DELETE', headers: service.auth })
    await service.stop()
    await sink.close()
  })

  const start = async (run: Store['run'] = (...args) => store.run(...args), settled = () => store.settled()) => {
    const watched = wrappedStore(store, (operation, args) => {
      operations.push(operation.name)
      return run(operation, args)
    })
    const options = { store: { ...watched, settled }, clock, meter, accountId: `acc_${accounts}` }
    service = await startQueue({ ...options, mayHaveStrays: true })
  }
  const sweeps = () => operations.filter((name) => name === 'messagesSweep.places').length
  /** Turns the clock at each check. */
  const passTimeUntil = (condition: () => boolean, what: string, byMs = 1_000) =>
    waitFor(
      () => {
        clock.advance(byMs)
        return condition()
      },
      { what },
    )
  const publish = (path: string, more: Record<string, string> = {}) =>
    fetch(`${service.url}/v2/publish/${sink.url}${path}`, {
      method: 'POST',
      headers: { ...service.auth, ...more },
      body: 'x',
    })
  const paths = () => sink.received.map(({ target }) => target)

  /** Stores a pending message, and offers it to nobody. */
  async function storeSilently(path: string, dueAt: number): Promise<void> {
    const url = `${sink.url}${path}`
    const at = clock.now()
    const about = { message_id: newId('msg_', at), account_id: `acc_${accounts}`, kind: 'http', created_at: at }
    const request = { url, method: 'POST', headers: '{}', host: new URL(url).host, path, body: null }
    await store.run(messages.insert, [
      { ...about, ...request, config: '{}', max_retries: 0, next_at: dueAt, labels: '' },
    ])
  }

  it('finds a message that nobody offered', async () => {
    await start()
    await publish('/first')
    await waitFor(() => meter.deliveries.delivered === 1, { what: 'the first message' })
    await storeSilently('/stray', clock.now())
    await passTimeUntil(() => meter.deliveries.delivered === 2, 'the stray')
    expect(paths()).toEqual(['/first', '/stray'])
    expect(meter.strays).toBe(1)
  })

  it('soon finds a new message that its priority has placed long before the others', async () => {
    await start()
    await publish('/first')
    await waitFor(() => meter.deliveries.delivered === 1, { what: 'the first message' })
    const begin = clock.now()
    await storeSilently('/urgent', begin - 600_000)
    await passTimeUntil(() => meter.deliveries.delivered === 2, 'the urgent message')
    expect(clock.now() - begin).toBeLessThan(60_000)
  })

  it('finds a message that was due long ago when it compares everything with the store', async () => {
    await start()
    await publish('/first')
    await waitFor(() => meter.deliveries.delivered === 1, { what: 'the first message' })
    const begin = clock.now()
    await storeSilently('/old', begin - 3_600_000)
    await passTimeUntil(() => meter.deliveries.delivered === 2, 'the old message', 20_000)
    expect(clock.now() - begin).toBeGreaterThanOrEqual(300_000)
    expect(meter.strays).toBe(1)
  })

  it('finds a message each time it goes missing', async () => {
    let settled = 0
    // Each outcome is stored and its answer is lost. When the dispatcher stores it again, the attempt is over.
    await start(async (operation, args) => {
      const value = await store.run(operation, args)
      if (operation.name === settle.name && settled++ % 2 === 0) throw new HomeportError('store_outcome_unknown', {})
      return value
    })
    sink.answer = () => (sink.received.length <= 5 ? { status: 500 } : {})
    const begin = clock.now()
    await publish('/often', { 'upstash-retries': '5', 'upstash-retry-delay': '1000' })
    await passTimeUntil(() => meter.deliveries.delivered === 1, 'the sixth attempt')
    expect([meter.strays, sink.received.length]).toEqual([5, 6])
    expect(clock.now() - begin).toBeLessThan(120_000)
  })

  it('does not count a message as a stray whose publisher does not know of its commit yet', async () => {
    let notify = (): void => undefined
    const notified = new Promise<void>((resolve) => (notify = resolve))
    let committed = 0
    const slow: Store['run'] = async (operation, args) => {
      const value = await store.run(operation, args)
      if (operation.name === 'messages.publish' && ++committed === 2) await notified
      return value
    }
    // An operation runs until its caller is notified.
    const settled = () => (committed === 2 ? notified : store.settled())
    await start(slow, settled)
    await publish('/first')
    const publishing = publish('/slow')
    await waitFor(() => committed === 2, { what: 'the second commit' })
    const before = sweeps()
    await passTimeUntil(() => sweeps() > before, 'a sweep after the commit')
    await store.settled()
    notify()
    await publishing
    await waitFor(() => meter.deliveries.delivered === 2, { what: 'both messages' })
    expect(meter.strays).toBe(0)
  })

  it('reads nothing when nothing has happened for a while', async () => {
    await start()
    await publish('/first')
    await waitFor(() => meter.deliveries.delivered === 1, { what: 'the first message' })
    await passTimeUntil(() => sweeps() > 0, 'a sweep')
    clock.advance(80_000)
    await service.queue.rest()
    const before = sweeps()
    clock.advance(80_000)
    await service.queue.rest()
    expect(sweeps()).toBe(before)
  })
})
