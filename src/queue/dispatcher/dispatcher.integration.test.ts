import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { newId } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { JumpingClock, type QueueUnderTest, type QueueUnderTestOptions, startQueue } from '../testing/harness.js'
import { messageRow } from '../testing/rows.js'
import { type Sink, startSink } from '../testing/sink.js'
import * as messages from '../transactions/messages.js'
import * as messagesCancel from '../transactions/messages-cancel.js'
import * as messagesRead from '../transactions/messages-read.js'
import type { MessageKind, Queue } from '../types.js'

describeOnEveryStore('the dispatcher', (openStore) => {
  let store: Store
  let sink: Sink
  let clock: ManualClock
  let accounts = 0
  const running: QueueUnderTest[] = []

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(async () => {
    sink = await startSink()
    clock = new ManualClock(Date.now())
    accounts++
  })
  afterEach(async () => {
    // Pending messages of a test must not be delivered by the dispatchers of later tests.
    for (const service of running.splice(0)) {
      await fetch(`${service.url}/v2/messages`, { method: 'DELETE', headers: service.auth })
      await stop(service)
    }
    await sink.close()
  })

  const start = async (options: Partial<QueueUnderTestOptions> = {}): Promise<QueueUnderTest> => {
    const service = await startQueue({ store, clock, accountId: `acc_${accounts}`, ...options })
    running.push(service)
    return service
  }

  /** Advances the clock by a second at each check. */
  const passTimeUntil = (condition: () => boolean | Promise<boolean>, what: string) =>
    waitFor(
      async () => {
        clock.advance(1_000)
        return condition()
      },
      { what },
    )

  /** Stops a service on a manual clock, which must advance while the service waits for requests in flight. */
  async function stop(service: QueueUnderTest): Promise<void> {
    let stopped = false
    const ended = service.stop().then(() => {
      stopped = true
    })
    await passTimeUntil(() => stopped, 'the stop')
    await ended
  }

  const publish = async (
    service: QueueUnderTest,
    headers: Record<string, string> = {},
    path = '/',
  ): Promise<string> => {
    const response = await fetch(`${service.url}/v2/publish/${sink.url}${path}`, {
      method: 'POST',
      headers: { ...service.auth, ...headers },
      body: 'x',
    })
    return ((await response.json()) as { messageId: string }).messageId
  }
  const arrived = (count: number) => waitFor(() => sink.received.length >= count, { what: `${count} deliveries` })
  const message = (messageId: string) =>
    store.run(messagesRead.message, { accountId: `acc_${accounts}`, kind: 'http', messageId })
  const state = (messageId: string, expected: string) =>
    waitFor(async () => (await message(messageId))?.state === expected, { what: `the message to be ${expected}` })

  it('delivers a delayed message at its time and not before', async () => {
    const service = await start()
    await publish(service, { 'Upstash-Delay': '30s' }, '/late')
    await publish(service, {}, '/now')
    await arrived(1)
    clock.advance(29_999)
    await publish(service, {}, '/then')
    await arrived(2)
    clock.advance(1)
    await arrived(3)
    expect(sink.received.map((got) => got.target)).toEqual(['/now', '/then', '/late'])
  })

  it('loads a message that is due in a week when its time comes', async () => {
    const service = await start()
    await publish(service, { 'Upstash-Delay': '7d' })
    for (let day = 0; day < 7; day++) {
      expect(sink.received).toHaveLength(0)
      clock.advance(86_400_000)
    }
    await passTimeUntil(() => sink.received.length === 1, 'the delivery')
  })

  it('delivers due messages after the clock was set ahead, and waits again after it was set back', async () => {
    const timeOfDay = new JumpingClock(clock)
    const service = await start({ clock: timeOfDay })
    await publish(service, { 'Upstash-Delay': '1h' }, '/hour')
    await publish(service, { 'Upstash-Delay': '2h' }, '/two')
    timeOfDay.jump(3_600_000)
    const before = clock.now()
    await passTimeUntil(() => sink.received.length === 1, 'the delivery')
    expect(clock.now() - before).toBeLessThan(120_000)
    timeOfDay.jump(-3_600_000)
    clock.advance(3_600_000)
    await publish(service, {}, '/probe')
    await arrived(2)
    expect(sink.received.map(({ target }) => target)).toEqual(['/hour', '/probe'])
    clock.advance(3_600_000)
    await arrived(3)
  })

  it('waits 12 seconds before the first retry by default', async () => {
    sink.answer = () => (sink.received.length === 1 ? { status: 500 } : {})
    const service = await start()
    const messageId = await publish(service)
    await waitFor(async () => (await message(messageId))?.retried === 1, { what: 'the failure' })
    clock.advance(12_181)
    await publish(service, {}, '/probe')
    await arrived(2)
    expect(sink.received[1]?.target).toBe('/probe')
    clock.advance(2)
    await arrived(3)
    await state(messageId, 'delivered')
  })

  it('fails an attempt without a response after its timeout', async () => {
    sink.answer = () => ({ silent: true })
    const service = await start()
    const messageId = await publish(service, { 'Upstash-Timeout': '5s', 'Upstash-Retries': '0' })
    await arrived(1)
    clock.advance(5_000)
    await state(messageId, 'failed')
    expect(await message(messageId)).toMatchObject({ response_status: 0, error: 'no complete response within 5000 ms' })
    await waitFor(() => sink.aborted === 1, { what: 'the connection to be closed' })
  })

  it('records why a destination could not be reached', async () => {
    const service = await start()
    const { url } = sink
    await sink.close()
    const response = await fetch(`${service.url}/v2/publish/${url}`, {
      method: 'POST',
      headers: { ...service.auth, 'Upstash-Retries': '0' },
    })
    const { messageId } = (await response.json()) as { messageId: string }
    await state(messageId, 'failed')
    expect(await message(messageId)).toMatchObject({ error: 'the connection was refused (ECONNREFUSED)' })
    sink = await startSink()
  })

  it('follows no redirect', async () => {
    sink.answer = () => ({ status: 307, headers: { Location: `${sink.url}/elsewhere` } })
    const service = await start()
    const messageId = await publish(service, { 'Upstash-Retries': '0' })
    await state(messageId, 'failed')
    expect(sink.received).toHaveLength(1)
  })

  it('keeps only the beginning of a large response', async () => {
    sink.answer = () => ({ body: 'y'.repeat(5_000) })
    const service = await start({ responseKeepBytes: 1_000 })
    const messageId = await publish(service)
    await state(messageId, 'delivered')
    expect((await message(messageId))?.response_body).toHaveLength(1_000)
  })

  it('resumes pending messages after a restart', async () => {
    sink.answer = () => ({ silent: true })
    const first = await start()
    const messageId = await publish(first)
    await publish(first, { 'Upstash-Delay': '10s' }, '/later')
    await arrived(1)
    await stop(first)
    running.length = 0
    sink.answer = () => ({})
    await start()
    await arrived(2)
    await state(messageId, 'delivered')
    // The aborted attempt has no outcome, so it does not count as a retry.
    expect(sink.received[1]?.headers).toMatchObject({ 'upstash-message-id': messageId, 'upstash-retried': '0' })
    clock.advance(10_000)
    await arrived(3)
  })

  it('delivers to other hosts while one does not respond', async () => {
    const quick = await startSink()
    sink.answer = () => ({ silent: true })
    const service = await start({ deliveryConcurrency: 4 })
    for (let n = 0; n < 20; n++) await publish(service)
    await arrived(2)
    for (let n = 0; n < 5; n++) {
      await fetch(`${service.url}/v2/publish/${quick.url}`, { method: 'POST', headers: service.auth })
    }
    await waitFor(() => quick.received.length === 5, { what: 'the deliveries to the other host' })
    expect(sink.received).toHaveLength(2)
    await quick.close()
  })

  it('sends requests that need much memory a few at a time, and others meanwhile', async () => {
    const silent = await startSink()
    silent.answer = () => ({ silent: true })
    let asked = 0
    const large: MessageKind = {
      name: 'large',
      prepare: async ({ url, method }, _wait, claim) => {
        asked++
        claim(100 * 2 ** 20)
        return { url, method, headers: {}, body: undefined }
      },
      settle: async () => ({ offers: [] }),
    }
    const rows = Array.from({ length: 10 }, () => {
      const own = { message_id: newId('msg_', clock.now()), account_id: `acc_${accounts}_large`, created_at: 0 }
      return messageRow({ ...own, kind: 'large', url: silent.url, host: new URL(silent.url).host })
    })
    const seqs = await store.run(messages.insert, rows)
    const extend = (queue: Queue) => {
      queue.addKind(large)
      return []
    }
    const service = await start({ deliveryConcurrency: 20, extend })
    await waitFor(() => silent.received.length === 2, { what: 'two large requests' })
    await publish(service)
    await arrived(1)
    expect(silent.received).toHaveLength(2)
    expect(asked).toBeLessThanOrEqual(12)
    await store.run(messagesCancel.cancel, { seqs, at: clock.now() })
    service.queue.drop({ seqs })
    await silent.close()
  })

  it('delivers for other accounts while one has a backlog of thousands and two destinations do not respond', async () => {
    const backlogOf = (url: string, count: number) =>
      Array.from({ length: count }, () => {
        const own = { message_id: newId('msg_', clock.now()), account_id: `acc_${accounts}_busy`, created_at: 0 }
        return messageRow({ ...own, url, host: new URL(url).host, path: '/' })
      })
    const dead = [await startSink(), await startSink()]
    for (const one of dead) one.answer = () => ({ silent: true })
    const rows = [...dead, sink].flatMap(({ url }) => backlogOf(`${url}/backlog`, 3_000))
    const seqs = await store.run(messages.insert, rows)
    const service = await start({ deliveryConcurrency: 4 })
    await waitFor(() => dead.every((one) => one.received.length > 0), { what: 'the deliveries without a response' })
    const before = sink.received.length
    await publish(service, {}, '/mine')
    await waitFor(
      () => {
        clock.advance(100)
        return sink.received.some(({ target }) => target === '/mine')
      },
      { what: 'the delivery of the other account' },
    )
    const after = sink.received.slice(before).findIndex(({ target }) => target === '/mine')
    expect(after).toBeLessThan(500)
    await store.run(messagesCancel.cancel, { seqs, at: clock.now() })
    service.queue.drop({ seqs })
    await Promise.all(dead.map((one) => one.close()))
  })

  it('commits an outcome after the store has failed at first', async () => {
    let failures = 2
    const flaky = wrappedStore(store, (operation, args) => {
      if (operation.name === 'messages.deliver' && failures-- > 0) return Promise.reject(new Error('disk trouble'))
      return store.run(operation, args)
    })
    const service = await start({ store: flaky })
    const messageId = await publish(service)
    await arrived(1)
    await passTimeUntil(async () => (await message(messageId))?.state === 'delivered', 'the outcome to be stored')
    expect([sink.received.length, failures]).toEqual([1, -1])
  })

  it('gives an outcome up that the store refuses once its message is cancelled', async () => {
    let failures = 0
    const broken = wrappedStore(store, (operation, args) => {
      if (!/^messages\.(?:settle|deliver)/.test(operation.name)) return store.run(operation, args)
      failures++
      return Promise.reject(new Error('it cannot be stored'))
    })
    const service = await start({ store: broken })
    const messageId = await publish(service)
    await waitFor(() => failures > 0, { what: 'the outcome to be refused' })
    await fetch(`${service.url}/v2/messages/${messageId}`, { method: 'DELETE', headers: service.auth })
    await passTimeUntil(async () => (await service.queue.rest()).isIdle, 'the message to be forgotten')
  })

  it('makes a dead letter of a message whose answer can never be stored', async () => {
    let tries = 0
    const picky = wrappedStore(store, (operation, args) => {
      if (operation.name !== 'messages.deliver') return store.run(operation, args)
      return Promise.reject(++tries > 6 ? new Error('no') : new HomeportError('store_unavailable', {}))
    })
    const service = await start({ store: picky })
    const messageId = await publish(service)
    const isFailed = async () => {
      clock.advance(60_000)
      return (await message(messageId))?.state === 'failed'
    }
    await waitFor(isFailed, { what: 'the failure to be stored' })
    expect(await message(messageId)).toMatchObject({ dlq_id: expect.any(String) })
    expect((await message(messageId))?.error).toMatch(/^the answer 200 could not be stored/)
    expect([sink.received.length, tries]).toEqual([1, 11])
  })
})
