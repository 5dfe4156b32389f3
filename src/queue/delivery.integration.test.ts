import { Receiver } from '@upstash/qstash'
import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { startQueue } from './testing/harness.js'
import { setQueueScenes } from './testing/scene.js'

describeOnSampledStore('delivery', (openStore) => {
  const scene = setQueueScenes(openStore)
  it('delivers with a signature that the official receiver accepts', async () => {
    const url = `${scene.sink.url}/hook?foo=bar&u=http://z/y`
    const { messageId } = await scene.client.publishJSON({
      url,
      body: { hello: 'wörld' },
      headers: { 'X-Mine': 'yes' },
    })
    await scene.arrived(1)
    const [got] = scene.sink.received
    expect(got?.target).toBe('/hook?foo=bar&u=http://z/y')
    expect(got?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-mine': 'yes',
      'user-agent': 'Upstash-QStash',
      'upstash-message-id': messageId,
      'upstash-retried': '0',
      'upstash-region': 'US-EAST-1',
      'upstash-caller-ip': '127.0.0.1',
    })
    expect(Object.keys(got?.headers ?? {}).filter((name) => name.includes('telemetry'))).toEqual([])
    const body = Buffer.from(got?.body ?? '', 'latin1').toString('utf8')
    expect(JSON.parse(body)).toEqual({ hello: 'wörld' })
    const { current, next } = scene.service.signingKeys()
    const receiver = new Receiver({ currentSigningKey: current, nextSigningKey: next })
    const signature = String(got?.headers['upstash-signature'])
    await expect(receiver.verify({ signature, body, url })).resolves.toBe(true)
    await expect(receiver.verify({ signature, body: `${body} ` })).rejects.toThrow()
  })

  it('sends the region of the server in upper case, as SDKs expect it', async () => {
    const service = await startQueue({ store: scene.store, accountId: 'acc_region', region: 'eu-central-1' })
    const { auth } = service
    await fetch(`${service.url}/v2/publish/${scene.sink.url}`, { method: 'POST', headers: auth })
    await scene.arrived(1)
    expect(scene.sink.received[0]?.headers['upstash-region']).toBe('EU-CENTRAL-1')
    await service.stop()
  })

  it('signs an empty body too', async () => {
    await scene.client.publish({ url: scene.sink.url, method: 'GET' })
    await scene.arrived(1)
    const { current, next } = scene.service.signingKeys()
    const receiver = new Receiver({ currentSigningKey: current, nextSigningKey: next })
    const signature = String(scene.sink.received[0]?.headers['upstash-signature'])
    await expect(receiver.verify({ signature, body: '' })).resolves.toBe(true)
    expect(scene.sink.received[0]?.method).toBe('GET')
  })

  it('retries with the settings of the message and then puts it into the dead letter queue', async () => {
    scene.sink.answer = () => ({ status: 500, body: 'no' })
    const { messageId } = await scene.client.publish({
      url: scene.sink.url,
      body: 'x',
      retries: 2,
      retryDelay: '10 * (1 + retried)',
    })
    await scene.arrived(3)
    const letters = await waitFor(
      async () => {
        const { messages } = await scene.client.dlq.listMessages({ filter: { messageId } })
        return messages.length > 0 && messages
      },
      { what: 'the dead letter' },
    )
    expect(scene.sink.received.map((got) => got.headers['upstash-retried'])).toEqual(['0', '1', '2'])
    expect(letters).toMatchObject([{ messageId, responseStatus: 500, responseBody: 'no', body: 'x' }])
  })

  it('counts no attempt on a reused connection that the destination has just closed', async () => {
    const log = async (messageId: string) =>
      (await scene.client.logs({ filter: { messageId } })).logs.map(({ state }) => state)
    const publishOnce = async () => {
      const { messageId } = await scene.client.publish({ url: scene.sink.url, body: 'x', retries: 0 })
      await waitFor(async () => /^(DELIVERED|FAILED)$/.test((await log(messageId))[0] ?? ''), { what: 'the end' })
      return log(messageId)
    }
    const usual = await publishOnce()
    scene.sink.answer = () => (scene.sink.received.length === 2 ? { hangsUp: true } : {})
    expect(await publishOnce()).toEqual(usual)
    expect(scene.sink.received.map((got) => got.headers['upstash-retried'])).toEqual(['0', '0', '0'])
    expect(new Set(scene.sink.received.slice(1).map((got) => got.headers['upstash-message-id'])).size).toBe(1)
  })

  it('does not retry when the destination forbids it', async () => {
    scene.sink.answer = () => ({ status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } })
    const { messageId } = await scene.client.publish({ url: scene.sink.url, body: 'x', retries: 5, retryDelay: '1' })
    await waitFor(async () => (await scene.client.dlq.listMessages({ filter: { messageId } })).messages.length === 1, {
      what: 'the dead letter',
    })
    expect(scene.sink.received).toHaveLength(1)
  })

  it('waits for the time in Retry-After', async () => {
    scene.sink.answer = () => (scene.sink.received.length === 1 ? { status: 429, headers: { 'Retry-After': '0' } } : {})
    await scene.client.publish({ url: scene.sink.url, body: 'x' })
    await scene.arrived(2)
    expect(scene.sink.received[1]?.headers['upstash-retried']).toBe('1')
  })

  it('passes the trace context of the publish request to the destination and the callback', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const headers = {
      ...scene.service.auth,
      traceparent,
      tracestate: 'vendor=1',
      'Upstash-Callback': `${scene.sink.url}/callback`,
    }
    await fetch(`${scene.service.url}/v2/publish/${scene.sink.url}/to`, { method: 'POST', headers })
    await scene.arrived(2)
    expect(scene.sink.received.map(({ target }) => target)).toEqual(['/to', '/callback'])
    for (const received of scene.sink.received)
      expect(received.headers).toMatchObject({ traceparent, tracestate: 'vendor=1' })
  })

  it('reports every response to the callback and the final failure to the failure callback', async () => {
    scene.sink.answer = (got) => (got.target === '/job' ? { status: 500, body: 'sorry' } : {})
    const { messageId } = await scene.client.publish({
      url: `${scene.sink.url}/job`,
      body: 'work',
      retries: 1,
      retryDelay: '1',
      callback: `${scene.sink.url}/each`,
      failureCallback: `${scene.sink.url}/end`,
      headers: { 'Upstash-Callback-Forward-X-Which': 'callback', 'Upstash-Failure-Callback-Retries': '0' },
    })
    await scene.arrived(5)
    const bodies = (target: string) =>
      scene.sink.received.filter((got) => got.target === target).map((got) => JSON.parse(got.body))
    const each = bodies('/each').sort((a, b) => a.retried - b.retried)
    expect(each).toMatchObject([
      {
        status: 500,
        retried: 0,
        maxRetries: 1,
        sourceMessageId: messageId,
        body: btoa('sorry'),
        sourceBody: btoa('work'),
      },
      { status: 500, retried: 1 },
    ])
    const [end] = bodies('/end')
    expect(end).toMatchObject({
      status: 500,
      retried: 1,
      url: `${scene.sink.url}/job`,
      dlqId: expect.stringMatching(/^\d+-\d+$/),
    })
    expect(scene.sink.received.find((got) => got.target === '/each')?.headers['x-which']).toBe('callback')
  })

  it('refuses a request for too many messages', async () => {
    const [names, destination] = [Array.from({ length: 101 }, (_, n) => n), scene.sink.url]
    await scene.client.urlGroups.addEndpoints({
      name: 'wide',
      endpoints: names.map((n) => ({ url: `${destination}/${n}` })),
    })
    for (const [item, count] of [
      [{ destination }, 10_001],
      [{ destination: 'wide' }, 100],
    ] as const) {
      const { status, answer } = await scene.ask('POST', '/v2/batch', Array<object>(count).fill(item))
      expect([status, answer]).toEqual([412, { error: expect.stringContaining('10000 messages in one request') }])
    }
    expect((await scene.client.logs()).logs).toEqual([])
  })

  it('publishes a batch in order and refuses only its invalid item', async () => {
    const response = await fetch(`${scene.service.url}/v2/batch`, {
      method: 'POST',
      headers: scene.service.auth,
      body: JSON.stringify([
        { destination: `${scene.sink.url}/a`, headers: { 'upstash-forward-x-n': '1' }, body: 'one' },
        { destination: 'nonsense' },
        { destination: `${scene.sink.url}/b`, headers: { 'Upstash-Method': 'PUT' } },
      ]),
    })
    const answers = (await response.json()) as Record<string, string>[]
    expect(answers).toMatchObject([
      { messageId: expect.stringMatching(/^msg_/) },
      { error: expect.stringContaining('nonsense') },
      { messageId: expect.stringMatching(/^msg_/) },
    ])
    await scene.arrived(2)
    expect(scene.sink.received.map((got) => `${got.method} ${got.target} ${got.body}`).sort()).toEqual([
      'POST /a one',
      'PUT /b ',
    ])
  })

  it('takes a batch in which absent fields are null, as the SDK for Python sends it', async () => {
    const absent = { headers: {}, body: null, queue: null }
    const items = [{ ...absent, destination: `${scene.sink.url}/a` }]
    expect(await scene.ask('POST', '/v2/batch', items)).toMatchObject({
      status: 200,
      answer: [{ messageId: expect.stringMatching(/^msg_/) }],
    })
    await scene.arrived(1)
    expect(scene.sink.received[0]).toMatchObject({ target: '/a', body: '' })
  })

  it('stores publications with the same deduplication id once', async () => {
    const publish = () => scene.client.publish({ url: scene.sink.url, body: 'x', deduplicationId: 'once' })
    const first = await publish()
    const second = await publish()
    expect(second).toMatchObject({ messageId: first.messageId, deduplicated: true })
    await scene.client.publish({ url: scene.sink.url, body: 'x', contentBasedDeduplication: true })
    const other = await scene.client.publish({ url: scene.sink.url, body: 'y', contentBasedDeduplication: true })
    expect(other.deduplicated).toBeUndefined()
    await scene.arrived(3)
  })

  it('cancels a message in flight: its request is aborted and its outcome ignored', async () => {
    scene.sink.answer = () => ({ silent: true })
    const { messageId } = await scene.client.publish({ url: scene.sink.url, body: 'x' })
    await scene.arrived(1)
    expect(await scene.client.messages.cancel(messageId)).toEqual({ cancelled: 1 })
    await waitFor(() => scene.sink.aborted === 1, { what: 'the abort' })
    await expect(scene.client.messages.get(messageId)).rejects.toThrow(messageId)
    const { logs } = await scene.client.logs({ filter: { messageId } })
    expect(logs.map((log) => log.state)).toEqual(['CANCELED', 'CANCEL_REQUESTED', 'CREATED'])
  })

  it('delivers bodies that are too large to wait in memory', async () => {
    const body = 'x'.repeat(100_000)
    scene.sink.answer = () => (scene.sink.received.length === 1 ? { status: 500 } : {})
    await scene.client.publish({ url: scene.sink.url, body, retryDelay: '1' })
    await scene.arrived(2)
    expect(scene.sink.received.map((got) => got.body === body)).toEqual([true, true])
  })
})
