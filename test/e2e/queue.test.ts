import { connect as connectSocket, type Socket } from 'node:net'
import { Receiver } from '@upstash/qstash'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Received, type Sink, startSink } from '../../src/queue/testing/sink.js'
import { atCleanup, waitFor } from '../support/index.js'
import { connect, createDatabase, receiverOf, useService } from './support/service.js'

/** The queue from a user's view: messages sent with the official client and received by a plain HTTP server. */

const service = useService({ env: { HOMEPORT_SHUTDOWN_GRACE_MS: '500' } })
let sink: Sink

beforeAll(async () => {
  sink = await startSink()
  atCleanup(() => sink.close())
})

beforeEach(() => {
  sink.received.length = 0
  sink.answer = () => ({})
})

const arrived = (count: number): Promise<Received[]> =>
  waitFor(() => sink.received.length >= count && sink.received, { what: `${count} deliveries` })

const textOf = (received: Received | undefined): string => Buffer.from(received?.body ?? '', 'latin1').toString('utf8')

const statesOf = async (messageId: string): Promise<string[]> => {
  const { logs } = await service.queue.logs({ filter: { messageId } })
  return logs.map(({ state }) => state).reverse()
}

/** Waits until the log of a message shows its end. */
const ended = (messageId: string): Promise<string[]> =>
  waitFor(
    async () => {
      const states = await statesOf(messageId)
      return /DELIVERED|FAILED|CANCELED/.test(String(states.at(-1))) && states
    },
    { what: `message ${messageId} to end` },
  )

/** Publishes a message that its destination refuses for good, and waits for the dead letter. */
async function deadLetter(label: string, more: { failureCallback?: string } = {}) {
  const broken = { status: 500, headers: { 'X-Reason': 'broken' }, body: 'out of order' }
  sink.answer = ({ target }) => (target === '/dead' ? broken : {})
  const { messageId } = await service.queue.publishJSON({
    url: `${sink.url}/dead`,
    body: { label },
    retries: 0,
    label,
    ...more,
  })
  await ended(messageId)
  const { messages } = await service.queue.dlq.listMessages({ filter: { messageId } })
  expect(messages).toHaveLength(1)
  return messages[0] as (typeof messages)[number]
}

describe('publishing', () => {
  it('delivers JSON with its headers, signed for the receiver', async () => {
    const url = `${sink.url}/hook?a=1&b=x%20y`
    const body = { hello: 'wörld', list: [1, 2] }
    const { messageId } = await service.queue.publishJSON({ url, body, headers: { 'X-Mine': 'yes' } })
    const [got] = await arrived(1)
    expect(got).toMatchObject({
      method: 'POST',
      target: '/hook?a=1&b=x%20y',
      headers: { 'content-type': 'application/json', 'x-mine': 'yes', 'upstash-message-id': messageId },
    })
    expect(JSON.parse(textOf(got))).toEqual(body)
    const signature = String(got?.headers['upstash-signature'])
    const receiver = receiverOf(service)
    expect(await receiver.verify({ signature, body: textOf(got), url })).toBe(true)
    await expect(receiver.verify({ signature, body: `${textOf(got)} ` })).rejects.toThrow()
    await expect(receiver.verify({ signature, body: textOf(got), url: `${sink.url}/other` })).rejects.toThrow()
    expect(await ended(messageId)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED'])
  })

  it('delivers text and bytes unchanged, with the requested method', async () => {
    const bytes = Buffer.from([0, 255, 1, 254, 13, 10])
    await service.queue.publish({
      url: `${sink.url}/text`,
      method: 'PUT',
      body: 'plain',
      headers: { 'Content-Type': 'text/csv' },
    })
    await service.queue.publish({ url: `${sink.url}/bytes`, body: new Blob([bytes]) })
    const requests = await arrived(2)
    const to = (target: string) => requests.find((request) => request.target === target)
    expect(to('/text')).toMatchObject({ method: 'PUT', body: 'plain', headers: { 'content-type': 'text/csv' } })
    expect(Buffer.from(to('/bytes')?.body ?? '', 'latin1')).toEqual(bytes)
  })

  it('publishes a batch in one request, each item with its own settings', async () => {
    const answers = await service.queue.batchJSON([
      { url: `${sink.url}/1`, body: { n: 1 }, headers: { 'X-N': 'one' } },
      { url: `${sink.url}/2`, body: { n: 2 }, delay: '1d' },
      { url: `${sink.url}/3`, body: { n: 3 }, method: 'PATCH' },
    ])
    const ids = answers.map((answer) => ('messageId' in answer ? answer.messageId : ''))
    expect(new Set(ids).size).toBe(3)
    const requests = await arrived(2)
    expect(requests.map(({ method, target }) => `${method} ${target}`).sort()).toEqual(['PATCH /3', 'POST /1'])
    expect(await service.queue.messages.get(ids[1] ?? '')).toMatchObject({ url: `${sink.url}/2`, body: '{"n":2}' })
    await service.queue.messages.cancel(ids[1] ?? '')
  })

  it('holds a delayed message back until it is due', async () => {
    const publishedAt = Date.now()
    const { messageId } = await service.queue.publish({ url: `${sink.url}/later`, body: 'x', delay: 1 })
    expect(await statesOf(messageId)).toEqual(['CREATED'])
    await arrived(1)
    expect(Date.now() - publishedAt).toBeGreaterThanOrEqual(1_000)
    const dueAt = Math.floor(Date.now() / 1_000) + 3_600
    const timed = await service.queue.publish({ url: sink.url, body: 'x', notBefore: dueAt })
    expect((await service.queue.messages.get(timed.messageId)).notBefore).toBe(dueAt * 1_000)
    await service.queue.messages.cancel(timed.messageId)
  })

  it('treats a repetition with the same deduplication id as the same message', async () => {
    const request = { url: `${sink.url}/once`, body: 'x', deduplicationId: 'order-12' }
    const first = await service.queue.publish(request)
    expect(await service.queue.publish(request)).toMatchObject({
      messageId: first.messageId,
      deduplicated: true,
    })
    await ended(first.messageId)
    expect(sink.received).toHaveLength(1)
  })
})

describe('retrying', () => {
  it('retries as often and with the delay that the message sets', async () => {
    sink.answer = () => (sink.received.length <= 2 ? { status: 500 } : {})
    const { messageId } = await service.queue.publish({
      url: sink.url,
      body: 'x',
      retries: 3,
      retryDelay: '20 * (1 + retried)',
    })
    expect(await ended(messageId)).toEqual([
      ...['CREATED', 'ACTIVE', 'ERROR', 'RETRY', 'ACTIVE', 'ERROR', 'RETRY', 'ACTIVE', 'DELIVERED'],
    ])
    expect(sink.received.map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '1', '2'])
  })

  it('waits as long as the destination requests', async () => {
    const times: number[] = []
    sink.answer = () => {
      times.push(Date.now())
      return times.length === 1 ? { status: 429, headers: { 'Retry-After': '1' } } : {}
    }
    const { messageId } = await service.queue.publish({ url: sink.url, body: 'x', retryDelay: '1' })
    await ended(messageId)
    expect(Number(times[1]) - Number(times[0])).toBeGreaterThanOrEqual(1_000)
  })

  it('ends an attempt after its timeout', async () => {
    sink.answer = () => (sink.received.length === 1 ? { silent: true } : {})
    const { messageId } = await service.queue.publish({ url: sink.url, body: 'x', timeout: 1, retryDelay: '1' })
    expect(await ended(messageId)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'RETRY', 'ACTIVE', 'DELIVERED'])
  })
})

describe('callbacks', () => {
  it('reports the answer of the destination', async () => {
    sink.answer = ({ target }) => (target === '/job' ? { status: 201, headers: { 'X-Job': '7' }, body: 'done' } : {})
    const { messageId } = await service.queue.publishJSON({
      url: `${sink.url}/job`,
      body: { task: 1 },
      callback: `${sink.url}/report`,
    })
    const report = (await arrived(2)).find(({ target }) => target === '/report')
    expect(JSON.parse(textOf(report))).toMatchObject({
      status: 201,
      body: btoa('done'),
      retried: 0,
      sourceMessageId: messageId,
      sourceBody: btoa('{"task":1}'),
      url: `${sink.url}/job`,
      header: expect.objectContaining({ 'X-Job': ['7'] }),
    })
    const signature = String(report?.headers['upstash-signature'])
    const verified = receiverOf(service).verify({ signature, body: textOf(report), url: `${sink.url}/report` })
    expect(await verified).toBe(true)
  })

  it('reports the failure of a message without retries left', async () => {
    const { dlqId, messageId } = await deadLetter('failing', { failureCallback: `${sink.url}/failed` })
    await waitFor(() => sink.received.some(({ target }) => target === '/failed'), { what: 'the failure callback' })
    const report = sink.received.find(({ target }) => target === '/failed')
    expect(JSON.parse(textOf(report))).toMatchObject({ status: 500, dlqId, sourceMessageId: messageId })
    await service.queue.dlq.delete(dlqId)
  })
})

describe('dead letters', () => {
  it('are listed, read, retried and deleted', async () => {
    const letter = await deadLetter('first')
    const other = await deadLetter('second')
    expect(letter).toMatchObject({
      url: `${sink.url}/dead`,
      body: '{"label":"first"}',
      responseStatus: 500,
      responseBody: 'out of order',
      responseHeader: expect.objectContaining({ 'X-Reason': ['broken'] }),
    })
    const read = await service.homeport.queue('GET', `/v2/dlq/${letter.dlqId}`)
    // The client adds its own members without a value.
    expect(read).toMatchObject({ status: 200, body: JSON.parse(JSON.stringify(letter)) })
    const { messages } = await service.queue.dlq.listMessages()
    expect(messages.map(({ dlqId }) => dlqId)).toEqual([letter.dlqId, other.dlqId])

    sink.received.length = 0
    sink.answer = () => ({})
    const { responses } = await service.queue.dlq.retry(letter.dlqId)
    const [again] = await arrived(1)
    expect(textOf(again)).toBe('{"label":"first"}')
    expect(again?.headers['upstash-message-id']).toBe(responses[0]?.messageId)
    expect(await service.queue.dlq.delete([other.dlqId])).toMatchObject({ deleted: 1 })
    expect((await service.queue.dlq.listMessages()).messages).toEqual([])
    for (const [method, path] of [
      ['GET', `/v2/dlq/${other.dlqId}`],
      ['DELETE', `/v2/dlq/${letter.dlqId}`],
      ['POST', `/v2/dlq/retry/${letter.dlqId}`],
    ] as const) {
      expect((await service.homeport.queue(method, path)).status).toBe(404)
    }
  })

  it('are selected by label, all together', async () => {
    const letters = [await deadLetter('red'), await deadLetter('blue'), await deadLetter('red')]
    sink.answer = () => ({})
    const { responses } = await service.queue.dlq.retry({ filter: { label: 'red' } })
    expect(responses).toHaveLength(2)
    expect((await service.queue.dlq.listMessages()).messages.map(({ dlqId }) => dlqId)).toEqual([letters[1]?.dlqId])
    expect(await service.queue.dlq.delete({ all: true })).toMatchObject({ deleted: 1 })
  })
})

describe('pending messages', () => {
  const later = (label: string) =>
    service.queue
      .publish({ url: `${sink.url}/${label}`, body: label, delay: '1d', label })
      .then(({ messageId }) => messageId)

  it('are cancelled one by one, by ids, by filter and all', async () => {
    const { messages } = service.queue
    const [a, b, c, d, e, f] = (await Promise.all(['a', 'b', 'c', 'd', 'd', 'f'].map(later))) as [
      ...[string, string, string, string, string, string],
    ]
    expect(await messages.get(a)).toMatchObject({ messageId: a, body: 'a', label: 'a' })
    await messages.delete(a)
    expect(await messages.cancel(b)).toEqual({ cancelled: 1 })
    expect(await messages.deleteMany([a, b, c])).toBe(1)
    expect(await messages.cancel({ filter: { label: 'd' } })).toEqual({ cancelled: 2 })
    expect(await messages.deleteAll()).toBe(1)
    for (const id of [a, b, c, d, e, f]) {
      expect(await statesOf(id)).toEqual(['CREATED', 'CANCEL_REQUESTED', 'CANCELED'])
      await expect(messages.get(id)).rejects.toThrow('There is no pending message')
    }
  })

  it('and all other messages are found in the logs by filters', async () => {
    const id = await later('found')
    const byLabel = await service.queue.logs({ filter: { label: 'found' } })
    expect(byLabel.logs.map(({ messageId, state }) => `${messageId} ${state}`)).toEqual([`${id} CREATED`])
    const byUrl = await service.queue.events({ filter: { url: `${sink.url}/found`, state: 'CREATED' } })
    expect(byUrl.events).toEqual(byLabel.logs)
    expect((await service.queue.logs({ filter: { messageId: id, state: 'DELIVERED' } })).logs).toEqual([])
    const page = await service.queue.logs({ count: 1 })
    expect([page.logs.length, typeof page.cursor]).toEqual([1, 'string'])
    await service.queue.messages.cancel(id)
  })
})

describe('credentials', () => {
  it('are refused with one text, whatever is wrong with them', async () => {
    const { queueUrl, credentials } = service.homeport
    const target = `${queueUrl}/v2/publish/${sink.url}`
    const wrong: RequestInit[] = [
      {},
      { headers: { authorization: 'Bearer wrong' } },
      { headers: { authorization: credentials.queueToken } },
      { headers: { authorization: `Basic ${credentials.queueToken}` } },
      { headers: { authorization: `Bearer ${credentials.queueToken}x` } },
      { headers: { authorization: `Bearer ${credentials.apiKey}` } },
    ]
    const answers = await Promise.all(wrong.map((init) => fetch(target, { method: 'POST', body: 'x', ...init })))
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.map(({ status }) => status)).toEqual(wrong.map(() => 401))
    expect([...new Set(texts)]).toEqual([expect.stringContaining('homeport env')])
    const inQuery = await fetch(`${target}?qstash_token=${encodeURIComponent(credentials.queueToken)}`, {
      method: 'POST',
    })
    expect(inQuery.status).toBe(200)
    await arrived(1)
    expect(sink.received).toHaveLength(1)
    expect(JSON.stringify(sink.received)).not.toContain(credentials.queueToken)
  })

  it('sign with the next key after a rotation, which receivers of the old pair accept', async () => {
    const before = (await service.homeport.queue('GET', '/v2/keys')).body as { current: string; next: string }
    const old = receiverOf(service)
    const rotated = await service.homeport.queue('POST', '/v2/keys/rotate')
    const keys = rotated.body as { current: string; next: string }
    expect(keys).toEqual({ current: before.next, next: expect.not.stringMatching(before.current) })
    expect((await service.homeport.queue('GET', '/v2/keys')).body).toEqual(keys)
    await service.queue.publish({ url: sink.url, body: 'x' })
    const [got] = await arrived(1)
    const request = { signature: String(got?.headers['upstash-signature']), body: 'x' }
    expect(await old.verify(request)).toBe(true)
    const current = new Receiver({ currentSigningKey: keys.current, nextSigningKey: keys.next })
    expect(await current.verify(request)).toBe(true)
    const outdated = new Receiver({ currentSigningKey: before.current, nextSigningKey: before.current })
    await expect(outdated.verify(request)).rejects.toThrow()
  })
})

/** Opens a connection and sends an incomplete request. */
function halfRequest(port: number): Promise<Socket> {
  const socket = connectSocket(port, '127.0.0.1')
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{'
  return new Promise((resolve) => socket.write(head, () => resolve(socket)))
}

describe('a restart', () => {
  it('with clients of every kind connected ends with code 0, and pending deliveries are made afterwards', async () => {
    const { homeport } = service
    const database = await createDatabase(service)
    const [blocked, subscriber] = [connect(database), connect(database)]
    await blocked.set('k', 'v')
    const popped = blocked.blpop('jobs', 0).catch((error: Error) => error.message)
    await subscriber.subscribe('news')
    const { apiPort, restPort, queuePort } = homeport.place
    await Promise.all([apiPort, restPort, queuePort, database.port].map(halfRequest))
    sink.answer = () => (sink.received.length === 1 ? { silent: true } : {})
    const { messageId } = await service.queue.publish({ url: sink.url, body: 'x' })
    await arrived(1)

    expect(await homeport.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(await popped).not.toBeInstanceOf(Array)
    expect(homeport.processes()).toEqual([])

    await service.restart('SIGTERM')
    await arrived(2)
    expect(sink.received.map(({ headers }) => headers['upstash-message-id'])).toEqual([messageId, messageId])
    expect(await connect(database).get('k')).toBe('v')
  })

  it('after SIGKILL finds every message, and the keys', async () => {
    const keys = (await service.homeport.queue('GET', '/v2/keys')).body
    const delayed = await service.queue.publish({ url: `${sink.url}/delayed`, body: 'later', delay: 2 })
    sink.answer = ({ target }) => (target === '/busy' ? { status: 503 } : {})
    // In a cluster, the other nodes retry it while this one starts again.
    const retrying = await service.queue.publish({
      url: `${sink.url}/busy`,
      body: 'x',
      retries: 1_000,
      retryDelay: '100',
    })
    await arrived(1)
    await service.restart('SIGKILL')
    expect(await service.queue.messages.get(delayed.messageId)).toMatchObject({ body: 'later' })
    sink.answer = () => ({})
    expect(await ended(delayed.messageId)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED'])
    expect((await ended(retrying.messageId)).at(-1)).toBe('DELIVERED')
    expect(sink.received.filter(({ target }) => target === '/delayed')).toHaveLength(1)
    expect((await service.homeport.queue('GET', '/v2/keys')).body).toEqual(keys)
  })
})
