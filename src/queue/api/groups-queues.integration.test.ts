import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { setQueueScenes } from '../testing/scene.js'

describeOnSampledStore('URL groups and queues', (openStore) => {
  const scene = setQueueScenes(openStore)
  const targets = () => scene.sink.received.map((request) => request.target)
  const emptied = (name: string) =>
    waitFor(async () => (await scene.client.queue({ queueName: name }).get()).lag === 0, { what: 'an empty queue' })

  it('publishes to every endpoint of a group at once', async () => {
    const endpoints = [{ name: 'one', url: `${scene.sink.url}/1?a=b` }, { url: `${scene.sink.url}/2` }]
    await scene.client.urlGroups.addEndpoints({ name: 'grp', endpoints })
    const replies = await scene.client.publishJSON({ urlGroup: 'grp', body: { a: 1 } })
    expect(replies).toEqual([
      { messageId: expect.stringMatching(/^msg_/), url: `${scene.sink.url}/1?a=b` },
      { messageId: expect.stringMatching(/^msg_/), url: `${scene.sink.url}/2` },
    ])
    await scene.arrived(2)
    expect(targets().sort()).toEqual(['/1?a=b', '/2'])
    expect(scene.sink.received[0]?.headers['upstash-topic-name']).toBe('grp')
    const message = await scene.client.messages.get(replies[0]?.messageId ?? '')
    expect(message).toMatchObject({ topicName: 'grp', endpointName: 'one' })
  })

  it('shows, changes and deletes groups', async () => {
    await scene.client.urlGroups.addEndpoints({ name: 'g', endpoints: [{ name: 'a', url: 'https://a.test/' }] })
    await scene.client.urlGroups.addEndpoints({
      name: 'g',
      endpoints: [
        { name: 'a', url: 'https://a2.test/' },
        { name: 'b', url: 'https://b.test/' },
      ],
    })
    expect((await scene.client.urlGroups.get('g')).endpoints).toEqual([
      { name: 'a', url: 'https://a2.test/' },
      { name: 'b', url: 'https://b.test/' },
    ])
    expect((await scene.client.urlGroups.list()).map((group) => group.name)).toEqual(['g'])
    await scene.client.urlGroups.removeEndpoints({ name: 'g', endpoints: [{ name: 'a' }] })
    expect((await scene.client.urlGroups.get('g')).endpoints).toEqual([{ name: 'b', url: 'https://b.test/' }])
    await scene.client.urlGroups.removeEndpoints({ name: 'g', endpoints: [{ url: 'https://b.test/' }] })
    await expect(scene.client.urlGroups.get('g')).rejects.toThrow(/no URL group/)
    await scene.client.urlGroups.delete('g')
    await expect(scene.client.publish({ urlGroup: 'g' })).rejects.toThrow(/no URL group/)
    expect(await scene.ask('DELETE', '/v2/topics/g/endpoints', { endpoints: [{ name: 'a' }] })).toMatchObject({
      status: 404,
    })
    expect(
      await scene.ask('POST', '/v2/topics/a%20b/endpoints', { endpoints: [{ url: 'https://a.test' }] }),
    ).toMatchObject({
      status: 400,
    })
  })

  it('refuses too many endpoints before comparing them, and removes any number', async () => {
    const endpoints = Array.from({ length: 9_000 }, (_, index) => ({ url: `https://e.test/${index}` }))
    const refused = await scene.ask('POST', '/v2/topics/full/endpoints', { endpoints })
    expect(refused).toMatchObject({ status: 412 })
    const path = '/v2/topics/full/endpoints'
    expect(await scene.ask('POST', path, { endpoints: endpoints.slice(0, 1_000) })).toMatchObject({ status: 200 })
    expect(await scene.ask('POST', path, { endpoints: endpoints.slice(1_000, 1_001) })).toMatchObject({ status: 412 })
    expect(await scene.ask('DELETE', path, { endpoints })).toMatchObject({ status: 200 })
    await expect(scene.client.urlGroups.get('full')).rejects.toThrow(/no URL group/)
  })

  it('refuses URLs that are too long together, in one request or several', async () => {
    const path = '/v2/topics/long/endpoints'
    const endpoints = Array.from({ length: 140 }, (_, at) => ({ url: `https://e.test/${'x'.repeat(8_000)}${at}` }))
    expect(await scene.ask('POST', path, { endpoints })).toMatchObject({ status: 412 })
    expect(await scene.ask('POST', path, { endpoints: endpoints.slice(0, 100) })).toMatchObject({ status: 200 })
    const { status, answer } = await scene.ask('POST', path, { endpoints: endpoints.slice(100) })
    const error = expect.stringMatching(/is "\d+ characters more".* at most 1048576 characters of all names and URLs/)
    expect([status, answer]).toEqual([412, { error }])
  })

  it('applies the default headers of a group where a publication does not set them', async () => {
    await scene.client.urlGroups.addEndpoints({ name: 'd', endpoints: [{ url: 'https://d.test/' }] })
    const headers = { 'Upstash-Retries': '7', 'Upstash-Delay': ['1h'] }
    expect(await scene.ask('PATCH', '/v2/topics/d', { headers })).toMatchObject({ status: 200 })
    const [byDefault] = await scene.client.publish({ urlGroup: 'd' })
    const [own] = await scene.client.publish({ urlGroup: 'd', retries: 2 })
    expect(await scene.client.messages.get(byDefault?.messageId ?? '')).toMatchObject({ maxRetries: 7 })
    expect(await scene.client.messages.get(own?.messageId ?? '')).toMatchObject({ maxRetries: 2 })
    expect(await scene.client.messages.cancel({ filter: { urlGroup: 'd' } })).toEqual({ cancelled: 2 })
    expect(await scene.ask('PATCH', '/v2/topics/d', { headers: { 'Upstash-Retries': 'x' } })).toMatchObject({
      status: 400,
    })
  })

  it('counts a repeated publication once for each endpoint', async () => {
    await scene.client.urlGroups.addEndpoints({
      name: 'e',
      endpoints: [{ url: 'https://1.test/' }, { url: 'https://2.test/' }],
    })
    const first = await scene.client.publish({ urlGroup: 'e', deduplicationId: 'x', delay: '1h' })
    const second = await scene.client.publish({ urlGroup: 'e', deduplicationId: 'x', delay: '1h' })
    expect(new Set(first.map((one) => one.messageId)).size).toBe(2)
    expect(second).toEqual(first.map((one) => ({ ...one, deduplicated: true })))
  })

  it('delivers the messages of a queue one after the other, in order', async () => {
    let open = 0
    let maxOpen = 0
    scene.sink.answer = () => {
      maxOpen = Math.max(maxOpen, ++open)
      setImmediate(() => open--)
      return {}
    }
    const queue = scene.client.queue({ queueName: 'fifo' })
    for (let i = 0; i < 20; i++) await queue.enqueue({ url: `${scene.sink.url}/${i}` })
    await scene.arrived(20)
    expect(targets()).toEqual(Array.from({ length: 20 }, (_, i) => `/${i}`))
    expect(maxOpen).toBe(1)
    await emptied('fifo')
    expect(await queue.get()).toMatchObject({ name: 'fifo', parallelism: 1, lag: 0, paused: false })
  })

  it('gives the next turn only when the callback of the previous message has ended', async () => {
    const order: string[] = []
    let callbackFailures = 2
    scene.sink.answer = ({ target }) => {
      order.push(target)
      return target === '/callback' && callbackFailures-- > 0 ? { status: 500 } : {}
    }
    const queue = scene.client.queue({ queueName: 'cb' })
    const headers = { 'Upstash-Callback-Retry-Delay': '1' }
    await queue.enqueue({ url: `${scene.sink.url}/a`, callback: `${scene.sink.url}/callback`, headers })
    await queue.enqueue({ url: `${scene.sink.url}/b` })
    await scene.arrived(5)
    await emptied('cb')
    expect(order).toEqual(['/a', '/callback', '/callback', '/callback', '/b'])
  })

  it('blocks the queue while a message is retried, until it has failed for good', async () => {
    scene.sink.answer = ({ target }) => (target === '/bad' ? { status: 500 } : {})
    const queue = scene.client.queue({ queueName: 'retry' })
    await queue.enqueue({
      url: `${scene.sink.url}/bad`,
      retries: 2,
      retryDelay: '1',
      failureCallback: `${scene.sink.url}/failed`,
    })
    await queue.enqueue({ url: `${scene.sink.url}/good` })
    await scene.arrived(5)
    expect(targets()).toEqual(['/bad', '/bad', '/bad', '/failed', '/good'])
  })

  it('gives as many turns as its parallelism, and none while paused', async () => {
    scene.sink.answer = () => ({ silent: true })
    const queue = scene.client.queue({ queueName: 'par' })
    await queue.upsert({ parallelism: 3, paused: true })
    for (let i = 0; i < 5; i++) await queue.enqueue({ url: `${scene.sink.url}/${i}` })
    expect(await queue.get()).toMatchObject({ lag: 5, paused: true })
    expect(scene.sink.received).toHaveLength(0)
    await queue.resume()
    await scene.arrived(3)
    await queue.upsert({ parallelism: 4, paused: false })
    await scene.arrived(4)
    expect(await queue.get()).toMatchObject({ lag: 5, parallelism: 4, paused: false })
    expect(scene.sink.received).toHaveLength(4)
    await queue.pause()
    expect((await scene.client.queue().list()).map((one) => one.paused)).toEqual([true])
  })

  it('gives the turn of a cancelled message to the next one', async () => {
    scene.sink.answer = ({ target }) => (target === '/first' ? { silent: true } : {})
    const queue = scene.client.queue({ queueName: 'cancel' })
    const first = await queue.enqueue({ url: `${scene.sink.url}/first` })
    const second = await queue.enqueue({ url: `${scene.sink.url}/second` })
    await queue.enqueue({ url: `${scene.sink.url}/third` })
    await scene.arrived(1)
    expect(await scene.client.messages.cancel(second.messageId)).toEqual({ cancelled: 1 })
    expect(await scene.client.messages.cancel(first.messageId)).toEqual({ cancelled: 1 })
    await scene.arrived(2)
    expect(targets()).toEqual(['/first', '/third'])
  })

  it('deletes a queue with its waiting messages', async () => {
    const queue = scene.client.queue({ queueName: 'gone' })
    await queue.upsert({ parallelism: 1, paused: true })
    for (let i = 0; i < 3; i++) await queue.enqueue({ url: `${scene.sink.url}/${i}` })
    await queue.delete()
    await expect(queue.get()).rejects.toThrow(/no queue/)
    const { logs } = await scene.client.logs({ filter: { queueName: 'gone', state: 'CANCELED' } })
    expect(logs).toHaveLength(3)
    await queue.delete()
  })

  it('accepts queues in batches and for URL groups, and retries dead letters in their queue', async () => {
    await scene.client.urlGroups.addEndpoints({
      name: 'g',
      endpoints: [{ url: `${scene.sink.url}/g1` }, { url: `${scene.sink.url}/g2` }],
    })
    await scene.client.batchJSON([
      { queueName: 'batch', url: `${scene.sink.url}/1`, body: {} },
      { queueName: 'batch', urlGroup: 'g', body: {} },
      { queueName: 'batch', url: `${scene.sink.url}/2`, body: {} },
    ])
    await scene.arrived(4)
    expect(targets()).toEqual(['/1', '/g1', '/g2', '/2'])
    scene.sink.answer = () => ({ status: 500 })
    await scene.client.queue({ queueName: 'batch' }).enqueue({ url: `${scene.sink.url}/dead`, retries: 0 })
    const [letter] = await waitFor(
      async () => {
        const { messages } = await scene.client.dlq.listMessages({ filter: { queueName: 'batch' } })
        return messages.length > 0 && messages
      },
      { what: 'a dead letter' },
    )
    scene.sink.answer = () => ({})
    await scene.client.dlq.retry(letter?.dlqId ?? '')
    await scene.arrived(6)
    await emptied('batch')
  })

  it('delays no other message behind a queue of thousands with an unresponsive destination', async () => {
    scene.sink.answer = ({ target }) => (target === '/long' ? { silent: true } : {})
    const long = { destination: `${scene.sink.url}/long`, queue: 'long' }
    for (let n = 0; n < 2; n++) await scene.ask('POST', '/v2/batch', Array<typeof long>(1_000).fill(long))
    await scene.client.queue({ queueName: 'short' }).enqueue({ url: `${scene.sink.url}/short` })
    await scene.client.publish({ url: `${scene.sink.url}/none` })
    await scene.arrived(3)
    expect(targets().sort()).toEqual(['/long', '/none', '/short'])
    expect(await scene.client.queue({ queueName: 'long' }).get()).toMatchObject({ lag: 2_000 })
  })

  it('resumes its queues after a restart', async () => {
    scene.sink.answer = () => ({ silent: true })
    const queue = scene.client.queue({ queueName: 'again' })
    await queue.enqueue({ url: `${scene.sink.url}/1` })
    await queue.enqueue({ url: `${scene.sink.url}/2` })
    await scene.arrived(1)
    await scene.restart(() => {
      scene.sink.answer = () => ({})
    })
    await emptied('again')
    expect(targets()).toEqual(['/1', '/1', '/2'])
  })

  it('refuses invalid names and values above the limits', async () => {
    const enqueue = (name: string) => scene.ask('POST', `/v2/enqueue/${name}/https://e.test/`)
    expect(await enqueue('a%20b')).toMatchObject({ status: 400 })
    expect(await scene.ask('POST', '/v2/queues', { queueName: 'x', parallelism: 5_000 })).toMatchObject({ status: 412 })
    expect(await scene.ask('POST', '/v2/queues/nowhere/pause')).toMatchObject({ status: 404 })
    expect(await scene.ask('GET', '/v2/queues/nowhere')).toMatchObject({ status: 404 })
  })
})
