import { Client } from '@upstash/qstash'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'
import { type Sink, startSink } from '../testing/sink.js'

describeOnEveryStore('URL groups and queues', (openStore) => {
  let store: Store
  let sink: Sink
  let service: QueueUnderTest
  let client: Client
  let accounts = 0

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(async () => {
    sink = await startSink()
    service = await startQueue({ store, accountId: `acc_gq_${++accounts}` })
    client = new Client({ baseUrl: service.url, token: service.token, retry: false })
  })
  afterEach(async () => {
    await service.stop()
    await sink.close()
  })

  const ask = async (method: string, target: string, body?: unknown) => {
    const init = { method, headers: service.auth, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await fetch(service.url + target, init)
    return { status: response.status, answer: (await response.json()) as never }
  }
  const targets = () => sink.received.map((request) => request.target)
  const arrived = (count: number) => waitFor(() => sink.received.length >= count, { what: `${count} deliveries` })
  const emptied = (name: string) =>
    waitFor(async () => (await client.queue({ queueName: name }).get()).lag === 0, { what: 'an empty queue' })

  it('publishes to every endpoint of a group at once', async () => {
    const endpoints = [{ name: 'one', url: `${sink.url}/1?a=b` }, { url: `${sink.url}/2` }]
    await client.urlGroups.addEndpoints({ name: 'grp', endpoints })
    const replies = await client.publishJSON({ urlGroup: 'grp', body: { a: 1 } })
    expect(replies).toEqual([
      { messageId: expect.stringMatching(/^msg_/), url: `${sink.url}/1?a=b` },
      { messageId: expect.stringMatching(/^msg_/), url: `${sink.url}/2` },
    ])
    await arrived(2)
    expect(targets().sort()).toEqual(['/1?a=b', '/2'])
    expect(sink.received[0]?.headers['upstash-topic-name']).toBe('grp')
    const message = await client.messages.get(replies[0]?.messageId ?? '')
    expect(message).toMatchObject({ topicName: 'grp', endpointName: 'one' })
  })

  it('shows, changes and deletes groups', async () => {
    await client.urlGroups.addEndpoints({ name: 'g', endpoints: [{ name: 'a', url: 'https://a.test/' }] })
    await client.urlGroups.addEndpoints({
      name: 'g',
      endpoints: [
        { name: 'a', url: 'https://a2.test/' },
        { name: 'b', url: 'https://b.test/' },
      ],
    })
    expect((await client.urlGroups.get('g')).endpoints).toEqual([
      { name: 'a', url: 'https://a2.test/' },
      { name: 'b', url: 'https://b.test/' },
    ])
    expect((await client.urlGroups.list()).map((group) => group.name)).toEqual(['g'])
    await client.urlGroups.removeEndpoints({ name: 'g', endpoints: [{ name: 'a' }] })
    expect((await client.urlGroups.get('g')).endpoints).toEqual([{ name: 'b', url: 'https://b.test/' }])
    await client.urlGroups.removeEndpoints({ name: 'g', endpoints: [{ url: 'https://b.test/' }] })
    await expect(client.urlGroups.get('g')).rejects.toThrow(/no URL group/)
    await client.urlGroups.delete('g')
    await expect(client.publish({ urlGroup: 'g' })).rejects.toThrow(/no URL group/)
    expect(await ask('DELETE', '/v2/topics/g/endpoints', { endpoints: [{ name: 'a' }] })).toMatchObject({ status: 404 })
    expect(await ask('POST', '/v2/topics/a%20b/endpoints', { endpoints: [{ url: 'https://a.test' }] })).toMatchObject({
      status: 400,
    })
  })

  it('applies the default headers of a group to what does not say otherwise', async () => {
    await client.urlGroups.addEndpoints({ name: 'd', endpoints: [{ url: 'https://d.test/' }] })
    const headers = { 'Upstash-Retries': '7', 'Upstash-Delay': ['1h'] }
    expect(await ask('PATCH', '/v2/topics/d', { headers })).toMatchObject({ status: 200 })
    const [byDefault] = await client.publish({ urlGroup: 'd' })
    const [own] = await client.publish({ urlGroup: 'd', retries: 2 })
    expect(await client.messages.get(byDefault?.messageId ?? '')).toMatchObject({ maxRetries: 7 })
    expect(await client.messages.get(own?.messageId ?? '')).toMatchObject({ maxRetries: 2 })
    expect(await client.messages.cancel({ filter: { urlGroup: 'd' } })).toEqual({ cancelled: 2 })
    expect(await ask('PATCH', '/v2/topics/d', { headers: { 'Upstash-Retries': 'x' } })).toMatchObject({ status: 400 })
  })

  it('counts a repeated publication once for each endpoint', async () => {
    await client.urlGroups.addEndpoints({
      name: 'e',
      endpoints: [{ url: 'https://1.test/' }, { url: 'https://2.test/' }],
    })
    const first = await client.publish({ urlGroup: 'e', deduplicationId: 'x', delay: '1h' })
    const second = await client.publish({ urlGroup: 'e', deduplicationId: 'x', delay: '1h' })
    expect(new Set(first.map((one) => one.messageId)).size).toBe(2)
    expect(second).toEqual(first.map((one) => ({ ...one, deduplicated: true })))
  })

  it('delivers the messages of a queue one after the other, in order', async () => {
    let open = 0
    let mostOpen = 0
    sink.answer = () => {
      mostOpen = Math.max(mostOpen, ++open)
      setImmediate(() => open--)
      return {}
    }
    const queue = client.queue({ queueName: 'fifo' })
    for (let i = 0; i < 20; i++) await queue.enqueue({ url: `${sink.url}/${i}` })
    await arrived(20)
    expect(targets()).toEqual(Array.from({ length: 20 }, (_, i) => `/${i}`))
    expect(mostOpen).toBe(1)
    await emptied('fifo')
    expect(await queue.get()).toMatchObject({ name: 'fifo', parallelism: 1, lag: 0, paused: false })
  })

  it('begins the next turn only when the callback of the message before has ended', async () => {
    const order: string[] = []
    let callbackFailures = 2
    sink.answer = ({ target }) => {
      order.push(target)
      return target === '/callback' && callbackFailures-- > 0 ? { status: 500 } : {}
    }
    const queue = client.queue({ queueName: 'cb' })
    const headers = { 'Upstash-Callback-Retry-Delay': '1' }
    await queue.enqueue({ url: `${sink.url}/a`, callback: `${sink.url}/callback`, headers })
    await queue.enqueue({ url: `${sink.url}/b` })
    await arrived(5)
    await emptied('cb')
    expect(order).toEqual(['/a', '/callback', '/callback', '/callback', '/b'])
  })

  it('holds the queue while a message is retried, and goes on when it has failed for good', async () => {
    sink.answer = ({ target }) => (target === '/bad' ? { status: 500 } : {})
    const queue = client.queue({ queueName: 'retry' })
    await queue.enqueue({ url: `${sink.url}/bad`, retries: 2, retryDelay: '1', failureCallback: `${sink.url}/failed` })
    await queue.enqueue({ url: `${sink.url}/good` })
    await arrived(5)
    expect(targets()).toEqual(['/bad', '/bad', '/bad', '/failed', '/good'])
  })

  it('lets as many messages have their turns as the parallelism says, and none while it is paused', async () => {
    sink.answer = () => ({ silent: true })
    const queue = client.queue({ queueName: 'par' })
    await queue.upsert({ parallelism: 3, paused: true })
    for (let i = 0; i < 5; i++) await queue.enqueue({ url: `${sink.url}/${i}` })
    expect(await queue.get()).toMatchObject({ lag: 5, paused: true })
    expect(sink.received).toHaveLength(0)
    await queue.resume()
    await arrived(3)
    await queue.upsert({ parallelism: 4, paused: false })
    await arrived(4)
    expect(await queue.get()).toMatchObject({ lag: 5, parallelism: 4, paused: false })
    expect(sink.received).toHaveLength(4)
    await queue.pause()
    expect((await client.queue().list()).map((one) => one.paused)).toEqual([true])
  })

  it('gives the turn of a canceled message to the next', async () => {
    sink.answer = ({ target }) => (target === '/first' ? { silent: true } : {})
    const queue = client.queue({ queueName: 'cancel' })
    const first = await queue.enqueue({ url: `${sink.url}/first` })
    const second = await queue.enqueue({ url: `${sink.url}/second` })
    await queue.enqueue({ url: `${sink.url}/third` })
    await arrived(1)
    expect(await client.messages.cancel(second.messageId)).toEqual({ cancelled: 1 })
    expect(await client.messages.cancel(first.messageId)).toEqual({ cancelled: 1 })
    await arrived(2)
    expect(targets()).toEqual(['/first', '/third'])
  })

  it('deletes a queue with what waits in it', async () => {
    const queue = client.queue({ queueName: 'gone' })
    await queue.upsert({ parallelism: 1, paused: true })
    for (let i = 0; i < 3; i++) await queue.enqueue({ url: `${sink.url}/${i}` })
    await queue.delete()
    await expect(queue.get()).rejects.toThrow(/no queue/)
    const { logs } = await client.logs({ filter: { queueName: 'gone', state: 'CANCELED' } })
    expect(logs).toHaveLength(3)
    await queue.delete()
  })

  it('takes queues in batches, whole groups in queues, and dead letters back into their queue', async () => {
    await client.urlGroups.addEndpoints({
      name: 'g',
      endpoints: [{ url: `${sink.url}/g1` }, { url: `${sink.url}/g2` }],
    })
    await client.batchJSON([
      { queueName: 'batch', url: `${sink.url}/1`, body: {} },
      { queueName: 'batch', urlGroup: 'g', body: {} },
      { queueName: 'batch', url: `${sink.url}/2`, body: {} },
    ])
    await arrived(4)
    expect(targets()).toEqual(['/1', '/g1', '/g2', '/2'])
    sink.answer = () => ({ status: 500 })
    await client.queue({ queueName: 'batch' }).enqueue({ url: `${sink.url}/dead`, retries: 0 })
    const [letter] = await waitFor(
      async () => {
        const { messages } = await client.dlq.listMessages({ filter: { queueName: 'batch' } })
        return messages.length > 0 && messages
      },
      { what: 'a dead letter' },
    )
    sink.answer = () => ({})
    await client.dlq.retry(letter?.dlqId ?? '')
    await arrived(6)
    await emptied('batch')
  })

  it('goes on with its queues after a restart', async () => {
    sink.answer = () => ({ silent: true })
    const queue = client.queue({ queueName: 'again' })
    await queue.enqueue({ url: `${sink.url}/1` })
    await queue.enqueue({ url: `${sink.url}/2` })
    await arrived(1)
    await service.stop()
    sink.answer = () => ({})
    service = await startQueue({ store, accountId: `acc_gq_${accounts}` })
    client = new Client({ baseUrl: service.url, token: service.token, retry: false })
    await emptied('again')
    expect(targets()).toEqual(['/1', '/1', '/2'])
  })

  it('refuses wrong names and too much', async () => {
    const enqueue = (name: string) => ask('POST', `/v2/enqueue/${name}/https://e.test/`)
    expect(await enqueue('a%20b')).toMatchObject({ status: 400 })
    expect(await ask('POST', '/v2/queues', { queueName: 'x', parallelism: 5_000 })).toMatchObject({ status: 412 })
    expect(await ask('POST', '/v2/queues/nowhere/pause')).toMatchObject({ status: 404 })
    expect(await ask('GET', '/v2/queues/nowhere')).toMatchObject({ status: 404 })
  })
})
