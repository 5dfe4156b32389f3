import { duplexPair } from 'node:stream'
import Type from 'typebox'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { yieldToEventLoop } from '../base/index.js'
import { endpoint } from '../contract/endpoint.js'
import type { Authenticator } from './caller.js'
import { type HttpServer, type RemoteNode, route } from './index.js'
import { listener } from './testing/listener.js'

const named = endpoint({
  id: 'named',
  service: 'queue',
  topic: 'Server',
  path: '/things/{id}',
  summary: '',
  description: '',
  errors: [],
  method: 'POST',
  auth: 'basic',
  access: 'write',
  params: Type.Object({ id: Type.String() }),
  body: { kind: 'json', schema: Type.Object({ text: Type.String() }) },
  success: { status: 200, description: '', body: Type.Unknown() },
})

/** Only this header has an account, so the test notices a node that does not check it. */
const authenticator: Authenticator = {
  basic: (header, ip) =>
    header === 'Basic good'
      ? { accountId: 'acc', email: 'a@b.c', accountType: 'paid', source: 'API_KEY', access: 'write', ip }
      : undefined,
  bearer: () => undefined,
}

let proceed = (): void => {}
/** Requests about `slow` wait for it. */
const slow = new Promise<void>((resolve) => {
  proceed = resolve
})

/** The nodes that have answered, with the trace context that they got. */
const answered: string[] = []

function server(name: string, elsewhere: (id: unknown) => RemoteNode | undefined): HttpServer {
  const serve = route(named, async ({ params, body, ip, requestId, headers: { traceparent, tracestate } }) => {
    if (params.id === 'slow') await slow
    return { name, ...params, ...body, ip, requestId, trace: [traceparent, tracestate] }
  })
  return listener({
    bodyLimitBytes: 10_000,
    authenticator,
    onInternalError: (error: unknown) => expect(error).toBeUndefined(),
    onAnswered: (_request, headers) => void answered.push(`${name}: ${headers.traceparent}`),
    onForward: ({ traceparent }, sinceMs) =>
      traceparent === undefined ? undefined : { traceparent: `${sinceMs > 0 && name} of ${String(traceparent)}` },
    routes: [{ ...serve, elsewhere: async ({ params }) => elsewhere((params as { id: string }).id) }],
  })
}

const away: RemoteNode = { node: 'c', connect: () => Promise.reject(new Error('no such node')) }
const silent: RemoteNode = {
  node: 'd',
  connect: async () => {
    const [near, far] = duplexPair()
    far.once('data', () => far.destroy())
    far.once('close', () => near.destroy())
    return near
  },
}
const third: HttpServer = server('third', () => undefined)
const home: HttpServer = server('home', (id) => (id === 'loop' ? to(first) : id === 'moved' ? to(third) : undefined))
const first: HttpServer = server('first', (id) => (id === 'away' ? away : id === 'lost' ? silent : to(home)))

const to = (other: HttpServer): RemoteNode => ({
  node: 'b',
  connect: async (ip) => {
    const [near, far] = duplexPair()
    other.accept(far, `${ip}0`)
    return near
  },
})

beforeAll(() => Promise.all([home, first, third].map((one) => one.start())))
afterAll(() => Promise.all([home, first, third].map((one) => one.stop())))

async function post(id: string, body: unknown, authorization = 'Basic good', trace = {}) {
  const headers = {
    ...trace,
    authorization,
    'content-type': 'application/json',
    'x-request-id': 'mine',
    'x-forwarded-for': '9.9.9.9',
  }
  const url = `http://127.0.0.1:${first.port}/things/${id}`
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: await answer.json() }
}

it('another node answers, and gets the address of the client and the id of the request', async () => {
  expect(await post('one', { text: 'ü'.repeat(2_000) })).toEqual({
    status: 200,
    body: {
      name: 'home',
      id: 'one',
      text: 'ü'.repeat(2_000),
      ip: '127.0.0.10',
      requestId: 'mine',
      trace: [null, null],
    },
  })
  expect((await post('one', { text: 1 })).status).toBe(400)
})

it('the other node gets the trace context of the first span in place of that of the client', async () => {
  const trace = { traceparent: 'client', tracestate: 'vendor=1' }
  expect(await post('one', { text: 'x' }, 'Basic good', trace)).toMatchObject({
    body: { trace: ['first of client', null] },
  })
  const nodes = () => answered.filter((one) => one.endsWith('client')).sort()
  await waitFor(() => nodes().length === 2, { what: 'both nodes to have answered' })
  expect(nodes()).toEqual(['first: client', 'home: first of client'])
})

it('a node passes no requests on without credentials or with too large a body', async () => {
  expect((await post('away', { text: 'x' }, 'Basic bad')).status).toBe(401)
  expect((await post('away', { text: 'x'.repeat(20_000) })).status).toBe(413)
})

it('the error says which node is away and whether something was sent; no request is passed on twice', async () => {
  expect(await post('away', { text: 'x' })).toMatchObject({
    status: 503,
    body: { error: expect.stringContaining('The node c must handle') },
  })
  expect(await post('lost', { text: 'x' })).toMatchObject({
    status: 502,
    body: { error: expect.stringContaining('it may have been made') },
  })
  expect(await post('loop', { text: 'x' })).toMatchObject({
    status: 503,
    body: { error: expect.stringContaining('forward it to b') },
  })
})

it('a request follows a resource to its new home, once', async () => {
  const answer = await post('moved', { text: '' })
  expect(answer).toMatchObject({ status: 200, body: { name: 'third' } })
})

it('a server finishes a request of another node before it stops', async () => {
  const stopping = server('stopping', () => undefined)
  await stopping.start()
  const [near, far] = duplexPair()
  stopping.accept(far, '192.0.2.1')
  const body = JSON.stringify({ text: '' })
  const head = ['POST /things/slow HTTP/1.1', 'host: x', 'authorization: Basic good', 'content-type: application/json']
  near.write(`${head.join('\r\n')}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  let text = ''
  near.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  await yieldToEventLoop()
  const stopped = stopping.stop(10_000).then(() => (text += ' stopped'))
  await yieldToEventLoop()
  proceed()
  await stopped
  expect(text).toMatch(/^HTTP\/1.1 200 .*stopping.* stopped$/s)
})
