import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { sha256Hex } from '../../base/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { setQueueScenes } from '../testing/scene.js'

type Refused = readonly [target: string, headers: Record<string, string>, status: number, reason: string]
/** Requests to publish that are refused, and with what. */
const REFUSED: readonly Refused[] = [
  ['/v2/publish/', {}, 400, 'destination is empty'],
  ['/v2/publish/some-group', {}, 404, 'URL group "some-group"'],
  ['/v2/publish/x.test/hook', {}, 400, 'http:// or https://, or the name of a URL group'],
  ['/v2/enqueue/http://x.test/hook', {}, 400, 'The queue name is "http:"'],
  ['/v2/publish/ftp://x/y', {}, 400, 'http:// or https://'],
  ['/v2/publish/http://', {}, 400, 'not a valid URL'],
  ['/v2/publish/https://u:p@x.test/', {}, 400, 'Upstash-Forward-Authorization'],
  ['/v2/publish/api/llm', {}, 400, 'model'],
  ['/v2/publish/http://x.test', { 'Upstash-Method': 'BREW' }, 400, 'one of GET, POST, PUT, PATCH, DELETE'],
  ['/v2/publish/http://x.test', { 'Upstash-Retries': '-1' }, 400, 'Upstash-Retries is "-1"'],
  ['/v2/publish/http://x.test', { 'Upstash-Retries': '1001' }, 412, 'at most 1000'],
  ['/v2/publish/http://x.test', { 'Upstash-Delay': 'soon' }, 400, 'Upstash-Delay is "soon"'],
  ['/v2/publish/http://x.test', { 'Upstash-Delay': '9999d' }, 412, 'Upstash-Delay'],
  ['/v2/publish/http://x.test', { 'Upstash-Timeout': '2d' }, 412, 'at most 900s'],
  ['/v2/publish/http://x.test', { 'Upstash-Retry-Delay': 'exit(1)' }, 400, '"exit" is neither'],
  ['/v2/publish/http://x.test', { 'Upstash-Callback': 'nowhere' }, 400, 'Upstash-Callback is "nowhere"'],
  [
    '/v2/publish/http://x.test',
    { 'Upstash-Callback': 'http://y.test', 'Upstash-Callback-Delay': '1s' },
    400,
    'delayed',
  ],
  ['/v2/publish/http://x.test', { 'Upstash-Label': 'a b' }, 400, 'letters, digits'],
  ['/v2/publish/http://x.test', { 'Upstash-Flow-Control-Value': 'period=1s' }, 400, 'rate, parallelism'],
  ['/v2/publish/http://x.test', { 'Upstash-Redact-Fields': 'all' }, 400, 'header[Name]'],
  ['/v2/publish/http://x.test', { 'Upstash-Cron': '* * * * *' }, 400, 'schedules'],
]

describeOnSampledStore('the queue API', (openStore) => {
  const scene = setQueueScenes(openStore)
  const later = { delay: '7d' } as const
  /** Publishes a message that fails at once, and waits for its dead letter. */
  const deadLetter = async (label: string, headers: Record<string, string> = {}) => {
    scene.sink.answer = () => ({ status: 418, headers: { 'X-Pot': 'tea' }, body: `short ${label}` })
    const { messageId } = await scene.client.publish({
      url: `${scene.sink.url}/dead`,
      body: 'payload',
      retries: 0,
      label,
      headers,
    })
    return waitFor(async () => (await scene.client.dlq.listMessages({ filter: { messageId } })).messages[0], {
      what: 'a dead letter',
    })
  }

  it('shows a pending message as it was published', async () => {
    const { messageId } = await scene.client.publishJSON({
      url: `${scene.sink.url}/?foo=bar`,
      body: { a: 1 },
      headers: { 'X-Mine': 'yes' },
      retries: 5,
      retryDelay: 'pow(2, retried) * 1000',
      timeout: 30,
      callback: `${scene.sink.url}/cb`,
      failureCallback: `${scene.sink.url}/fail`,
      label: ['red', 'blue'],
      flowControl: { key: 'k/1', parallelism: 2, rate: 5, period: '1d' },
      ...later,
    })
    const message = await scene.client.messages.get(messageId)
    expect(message).toMatchObject({
      messageId,
      url: `${scene.sink.url}/?foo=bar`,
      method: 'POST',
      header: { 'Content-Type': ['application/json'], 'X-Mine': ['yes'] },
      body: '{"a":1}',
      maxRetries: 5,
      retryDelayExpression: 'pow(2, retried) * 1000',
      timeout: 30_000,
      callback: `${scene.sink.url}/cb`,
      failureCallback: `${scene.sink.url}/fail`,
      label: 'red',
      labels: ['red', 'blue'],
      flowControlKey: 'k/1',
      parallelism: 2,
      rate: 5,
      period: 86_400,
      callerIP: '127.0.0.1',
      callerIp: '127.0.0.1',
    })
    expect(Object.keys(message.header ?? {}).sort()).toEqual(['Content-Type', 'X-Mine'])
    expect(Number(message.notBefore) - message.createdAt).toBe(7 * 86_400_000)
  })

  it('shows redacted values only as hashes, and delivers the original ones', async () => {
    const redact: { body: true; header: string[] } = { body: true, header: ['X-Secret'] }
    const { messageId } = await scene.client.publish({
      url: `${scene.sink.url}/`,
      body: 'top secret',
      headers: { 'X-Secret': 's3cret', 'X-Open': 'open' },
      redact,
    })
    await waitFor(() => scene.sink.received.length === 1, { what: 'the delivery' })
    expect(scene.sink.received[0]).toMatchObject({ body: 'top secret', headers: { 'x-secret': 's3cret' } })
    const message = await scene.client.messages.get(messageId)
    expect(message.body).toBe(`REDACTED:${sha256Hex('top secret')}`)
    expect(message.header).toMatchObject({ 'X-Secret': [`REDACTED:${sha256Hex('s3cret')}`], 'X-Open': ['open'] })
    const { logs } = await scene.client.logs({ filter: { messageId } })
    expect(JSON.stringify(logs)).not.toMatch(/s3cret|top secret/)
    expect(JSON.stringify(logs)).not.toContain(btoa('top secret'))
  })

  it('reads settings from the query, prefers headers, and keeps the query of the destination', async () => {
    const target = `${scene.sink.url}/x?a=1&upstash-retries=7&b=%20c&upstash-forward-x-q=q&upstash-delay=7d`
    const response = await fetch(`${scene.service.url}/v2/publish/${target}`, {
      method: 'POST',
      headers: { ...scene.service.auth, 'Upstash-Retries': '2' },
    })
    const { messageId } = (await response.json()) as { messageId: string }
    expect(await scene.client.messages.get(messageId)).toMatchObject({
      url: `${scene.sink.url}/x?a=1&b=%20c`,
      maxRetries: 2,
      header: { 'X-Q': ['q'] },
    })
  })

  it('reads the token from the query and does not forward it', async () => {
    const token = encodeURIComponent(scene.service.token)
    const target = `${scene.sink.url}/x?qstash_token=${token}&keep=1&upstash-header-forward=true`
    const response = await fetch(`${scene.service.url}/v2/publish/${target}`, {
      method: 'POST',
      headers: { 'X-Hook': 'h' },
    })
    expect(response.status).toBe(200)
    await waitFor(() => scene.sink.received.length === 1, { what: 'the delivery' })
    expect(scene.sink.received[0]).toMatchObject({ target: '/x?keep=1', headers: { 'x-hook': 'h' } })
    expect((await fetch(`${scene.service.url}/v2/dlq?qstash_token=${token}`)).status).toBe(200)
  })

  it("forwards a webhook's own Authorization header, and never a token of this service", async () => {
    const token = encodeURIComponent(scene.service.token)
    const target = `${scene.service.url}/v2/publish/${scene.sink.url}/?upstash-header-forward=true`
    const send = (url: string, authorization: string) => fetch(url, { method: 'POST', headers: { authorization } })
    const other = Buffer.from('{"UserID":"other","Password":"p"}').toString('base64')
    await send(`${target}&qstash_token=${token}`, 'Bearer of-the-sender')
    await send(`${target}&qstash_token=${token}`, 'Basic dTpw')
    await send(`${target}&qstash_token=${token}`, `Bearer ${scene.service.token}`)
    await send(`${target}&qstash_token=${token}`, `Bearer ${other}`)
    await send(target, `Bearer ${scene.service.token}`)
    await waitFor(() => scene.sink.received.length === 5, { what: 'the deliveries' })
    const passed = scene.sink.received.flatMap(({ headers }) => headers.authorization ?? [])
    expect(passed.toSorted()).toEqual(['Basic dTpw', 'Bearer of-the-sender'])
  })

  it('refuses settings that are wrong', async () => {
    for (const [target, headers, status, reason] of REFUSED) {
      const init = { method: 'POST', headers: { ...scene.service.auth, ...headers } }
      const response = await fetch(scene.service.url + target, init)
      const { error } = (await response.json()) as { error: string }
      const said = { target, headers, status, error: expect.stringContaining(reason) }
      expect({ target, headers, status: response.status, error }).toEqual(said)
    }
  })

  it('cancels the messages that match a filter and no others', async () => {
    const publish = (path: string, label: string) =>
      scene.client.publish({ url: `${scene.sink.url}${path}`, label, ...later })
    await publish('/a', 'x')
    await publish('/a', 'y')
    await publish('/b', 'x')
    await publish('/b', 'z')
    const cancelled = (count: number) => ({ status: 200, answer: { cancelled: count } })
    expect(await scene.ask('DELETE', '/v2/messages?label=x,y&path=/a')).toEqual(cancelled(2))
    expect(await scene.ask('DELETE', '/v2/messages', { label: 'nothing' })).toEqual(cancelled(0))
    expect(await scene.ask('DELETE', '/v2/messages?labeel=x')).toMatchObject({
      status: 400,
      answer: { error: expect.stringContaining('label') },
    })
    expect(await scene.ask('DELETE', '/v2/messages?label=')).toMatchObject({ status: 400 })
    expect(await scene.ask('DELETE', '/v2/messages', { label: [] })).toMatchObject({ status: 400 })
    expect(await scene.ask('DELETE', '/v2/messages?fromDate=5&toDate=5')).toMatchObject({ status: 400 })
    expect(await scene.ask('DELETE', '/v2/messages?fromDate=1700000000')).toEqual({
      status: 400,
      answer: { error: 'fromDate is 1700000000, which looks like seconds; send Unix milliseconds.' },
    })
    expect(await scene.ask('DELETE', '/v2/messages', { messageIds: [] })).toEqual(cancelled(0))
    expect(await scene.ask('DELETE', '/v2/messages?queueName=q')).toEqual(cancelled(0))
    expect(await scene.ask('DELETE', '/v2/messages?count=1')).toEqual(cancelled(1))
    expect(await scene.ask('DELETE', '/v2/messages')).toEqual(cancelled(1))
  })

  it('cancels by ids with the SDK client, each message once', async () => {
    const ids = [
      await scene.client.publish({ url: scene.sink.url, ...later }),
      await scene.client.publish({ url: scene.sink.url, ...later }),
    ]
    const messageIds = ids.map(({ messageId }) => messageId)
    expect(await scene.client.messages.cancel([...messageIds, 'msg_none'])).toEqual({ cancelled: 2 })
    expect(await scene.client.messages.cancel({ all: true })).toEqual({ cancelled: 0 })
    expect(await scene.ask('DELETE', `/v2/messages/${messageIds[0]}`)).toMatchObject({ status: 404 })
    expect(await scene.ask('GET', `/v2/messages/${messageIds[0]}?cancelled=true`)).toMatchObject({ status: 200 })
  })

  it('lists, reads and deletes dead letters', async () => {
    const a = await deadLetter('a')
    const b = await deadLetter('b')
    expect(a).toMatchObject({ responseStatus: 418, responseBody: 'short a', responseHeader: { 'X-Pot': ['tea'] } })
    const page = await scene.client.dlq.listMessages({ count: 1 })
    expect(page.messages.map((letter) => letter.dlqId)).toEqual([a.dlqId])
    const rest = await scene.client.dlq.listMessages({ cursor: page.cursor })
    expect(rest.messages.map((letter) => letter.dlqId)).toEqual([b.dlqId])
    expect(rest.cursor).toBeUndefined()
    const latest = await scene.ask('GET', '/v2/dlq?order=latestFirst&label=a&label=b&responseStatus=418')
    expect(latest.answer).toMatchObject({ messages: [{ dlqId: b.dlqId }, { dlqId: a.dlqId }] })
    expect(await scene.ask('GET', `/v2/dlq/${a.dlqId}`)).toMatchObject({ status: 200, answer: { label: 'a' } })
    // Clients send parameters to reads that this server does not know; what deletes refuses them.
    expect(await scene.ask('GET', '/v2/dlq?trimBody=1&later=x')).toMatchObject({ status: 200 })
    expect(await scene.ask('DELETE', '/v2/dlq?labeel=a')).toMatchObject({ status: 400 })
    expect(await scene.ask('GET', '/v2/dlq?cursor=nonsense')).toMatchObject({ status: 400 })
    await scene.client.dlq.delete(a.dlqId)
    expect(await scene.ask('DELETE', `/v2/dlq/${a.dlqId}`)).toMatchObject({ status: 404 })
    expect(await scene.ask('DELETE', '/v2/dlq', { dlqIds: [a.dlqId, b.dlqId] })).toEqual({
      status: 200,
      answer: { deleted: 1 },
    })
    expect((await scene.client.dlq.listMessages()).messages).toEqual([])
  })

  it('sends dead letters again with their original content and the settings of the request', async () => {
    const letter = await deadLetter('again', { 'X-Key': 'value', 'Upstash-Redact-Fields': 'body' })
    scene.sink.answer = () => ({})
    scene.sink.received.length = 0
    expect(await scene.ask('POST', '/v2/dlq/retry/1-1')).toMatchObject({ status: 404 })
    const retried = await scene.ask('POST', `/v2/dlq/retry?dlqIds=${letter.dlqId}`)
    expect(retried).toMatchObject({
      status: 201,
      answer: { responses: [{ messageId: expect.stringMatching(/^msg_/) }] },
    })
    await waitFor(() => scene.sink.received.length === 1, { what: 'the delivery' })
    expect(scene.sink.received[0]).toMatchObject({
      body: 'payload',
      headers: { 'x-key': 'value', 'upstash-retried': '0' },
    })
    expect((await scene.client.dlq.listMessages()).messages).toEqual([])
    const second = await deadLetter('twice')
    const response = await fetch(`${scene.service.url}/v2/dlq/retry/${second.dlqId}`, {
      method: 'POST',
      headers: { ...scene.service.auth, 'Upstash-Delay': '1d', 'Upstash-Retries': '9' },
    })
    expect(response.status).toBe(201)
    const { messageId } = (await response.json()) as { messageId: string }
    expect(await scene.client.messages.get(messageId)).toMatchObject({ maxRetries: 9, label: 'twice', body: 'payload' })
  })

  it('does not apply the limits of one flow-control key to another when a dead letter is retried with it', async () => {
    const letter = await deadLetter('limited', {
      'Upstash-Flow-Control-Key': 'old',
      'Upstash-Flow-Control-Value': 'parallelism=3',
    })
    const retry = async (key: string) => {
      const headers = { ...scene.service.auth, 'Upstash-Flow-Control-Key': key, 'Upstash-Delay': '7d' }
      const target = `${scene.service.url}/v2/dlq/retry/${letter?.dlqId}`
      expect((await fetch(target, { method: 'POST', headers })).status).toBe(201)
      return scene.client.flowControl.get(key)
    }
    expect(await retry('new')).toMatchObject({ parallelismMax: 0 })
    expect(await scene.client.flowControl.get('old')).toMatchObject({ parallelismMax: 3 })
  })

  it('limits pages by the size of their content', async () => {
    scene.sink.answer = () => ({ status: 500 })
    const body = 'x'.repeat(5 * 2 ** 20)
    const isDead = async (label: string) =>
      (await scene.client.dlq.listMessages({ count: 1, filter: { label } })).messages.length > 0
    for (const label of ['a', 'b']) {
      await scene.client.publish({ url: scene.sink.url, body, label, retries: 0 })
      await waitFor(() => isDead(label), { what: `the dead letter ${label}` })
    }
    interface Seen {
      readonly label: string
      readonly state: string
    }
    const pagesOf = async (target: string, key: string) => {
      const pages: Seen[][] = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const { answer } = await scene.ask('GET', `${target}&cursor=${cursor}`)
        const { [key]: seen, cursor: next } = answer as { [key: string]: Seen[] } & { cursor?: string }
        pages.push(seen as Seen[])
        cursor = next
      }
      return pages
    }
    const letters = await pagesOf('/v2/dlq?count=100', 'messages')
    expect(letters.map((page) => page.map(({ label }) => label))).toEqual([['a'], ['b']])
    const events = await pagesOf('/v2/events?order=earliestFirst&state=CREATED&state=FAILED', 'events')
    expect(events.filter((page) => page.length > 2)).toEqual([])
    const states = ['CREATED', 'FAILED']
    const expected = ['a', 'b'].flatMap((label) => states.map((state) => `${label} ${state}`))
    expect(events.flat().map(({ label, state }) => `${label} ${state}`)).toEqual(expected)
    const lean = await scene.ask('GET', '/v2/events?trimBody=0')
    expect((lean.answer as { events: object[] }).events).toHaveLength(8)
    scene.sink.answer = () => ({})
    const again = await scene.ask('POST', '/v2/dlq/retry?count=100', undefined)
    expect(again).toMatchObject({
      answer: { responses: [{ messageId: expect.any(String) }], cursor: expect.any(String) },
    })
    const [left] = (await pagesOf('/v2/dlq?count=1', 'messages')).flat() as unknown as { dlqId: string }[]
    const named = await scene.ask('POST', `/v2/dlq/retry?dlqIds=${left?.dlqId}&dlqIds=1-1`)
    expect((named.answer as { responses: object[] }).responses).toHaveLength(1)
    await scene.arrived(4)
    expect(scene.sink.received.slice(2).every((request) => request.body === body)).toBe(true)
  })

  it('signs with the next key after a rotation', async () => {
    const before = scene.service.signingKeys()
    expect(await scene.ask('GET', '/v2/keys')).toEqual({ status: 200, answer: before })
    const { answer } = await scene.ask('POST', '/v2/keys/rotate')
    expect(answer).toMatchObject({ current: before.next })
    expect(scene.service.signingKeys()).toEqual(answer)
  })
})
