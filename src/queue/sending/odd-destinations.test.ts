import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { systemClock } from '../../base/index.js'
import { ContinuedResponse } from './continued-response.js'
import { OutgoingRequest } from './outgoing-request.js'
import { Sender, type SendRequest } from './sender.js'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** A destination that sends these bytes for each request, and leaves its connections open. */
async function startDestination(bytes: string) {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => undefined)
    socket.on('data', () => socket.write(bytes, 'latin1'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, open }
}

function startSender() {
  const sender = new Sender({ clock: systemClock, connectionsPerHost: 1, keepBytes: 100 })
  cleanups.unshift(() => sender.close())
  return (url: string, settings?: Partial<SendRequest>) =>
    sender.send({ url, method: 'POST', headers: [], body: undefined, timeoutMs: 30_000, ...settings })
}

async function outcomeOf(bytes: string) {
  const { url } = await startDestination(bytes)
  return startSender()(url).outcome
}

describe('a response that undici reads and that does not end', () => {
  const BEGINNING = 'HTTP/1.0 200 OK\r\n\r\nhello'

  it('ends with its deadline', async () => {
    const { url, open } = await startDestination(BEGINNING)
    const outcome = await startSender()(url, { timeoutMs: 50 }).outcome
    expect(outcome).toMatchObject({ kind: 'unanswered', error: 'no complete response within 50 ms' })
    await waitFor(() => open.size === 0, { what: 'the end of the connection' })
  })

  it('ends when it is aborted', async () => {
    const { url, open } = await startDestination(BEGINNING)
    const sending = startSender()(url)
    await waitFor(() => open.size === 1, { what: 'the connection' })
    sending.abort()
    expect(await sending.outcome).toBeUndefined()
    await waitFor(() => open.size === 0, { what: 'the end of the connection' })
  })
})

describe('a connection that cannot be made', () => {
  /** A destination that accepts connections and never answers the TLS handshake. */
  const startSilent = async () => {
    const { url, open } = await startDestination('')
    return { url: url.replace('http:', 'https:'), open }
  }

  it('is given up when its request is aborted', async () => {
    const { url, open } = await startSilent()
    const sending = startSender()(url)
    await waitFor(() => open.size === 1, { what: 'the connection' })
    sending.abort()
    expect(await sending.outcome).toBeUndefined()
    await waitFor(() => open.size === 0, { what: 'the end of the connection', deadlineMs: 5_000 })
  })

  it('is given up at the deadline of its request', async () => {
    const { url, open } = await startSilent()
    const outcome = await startSender()(url, { timeoutMs: 500 }).outcome
    expect(outcome).toMatchObject({ kind: 'unanswered', error: 'no complete response within 500 ms' })
    await waitFor(() => open.size === 0, { what: 'the end of the connection', deadlineMs: 5_000 })
  })

  it('is given up when the sender is closed', async () => {
    const { url, open } = await startSilent()
    const sender = new Sender({ clock: systemClock, connectionsPerHost: 1, keepBytes: 100 })
    const { outcome } = sender.send({ url, method: 'GET', headers: [], body: undefined, timeoutMs: 30_000 })
    await waitFor(() => open.size === 1, { what: 'the connection' })
    await sender.close()
    expect(await outcome).toMatchObject({ kind: 'unanswered' })
    await waitFor(() => open.size === 0, { what: 'the end of the connection', deadlineMs: 5_000 })
  })
})

it('the sender reports the error of a connection that ends before undici has taken its response over', async () => {
  const request = new OutgoingRequest('http://127.0.0.1:1', '/', { method: 'GET', headers: [], body: undefined })
  const source = { pause: () => undefined, resume: () => undefined, destroy: () => undefined }
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  const reported = await new Promise<Error>((resolve) => {
    const unused = () => undefined
    const handler = { onRequestStart: unused, onResponseStart: unused, onResponseData: unused, onResponseEnd: unused }
    const onResponseError = (_controller: unknown, error: Error): void => resolve(error)
    new ContinuedResponse(request, { ...handler, onResponseError }, source, Buffer.from('HTTP/1.0 200')).end(reset)
  })
  expect(reported).toBe(reset)
})

describe('a head that is not HTTP', () => {
  it.each([
    ['lines that end without CR', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['one line that ends without CR', 'HTTP/1.1 200 OK\r\nContent-Length: 2\n\nok'],
    ['an empty line without CR', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok'],
    ['a line that is no header', 'HTTP/1.1 200 OK\r\nno header\r\n'],
    ['a status that is no number', 'HTTP/1.1 2x0 OK\r\n'],
  ])('fails at once: %s', async (_name, bytes) => {
    expect(await outcomeOf(bytes)).toMatchObject({ kind: 'unanswered', error: expect.stringMatching(/^Response /) })
  })
})

describe('chunks', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

  it.each([
    ['sizes with many zeros', '00000000000000000002\r\nok\r\n00000000000000000000\r\n\r\n'],
    ['an extension with other characters than ASCII', '2;a="\xe9"\r\nok\r\n0\r\n\r\n'],
    ['an extension of a megabyte', `2;a=${'x'.repeat(2 ** 20)}\r\nok\r\n0\r\n\r\n`],
    ['a trailer with other characters than ASCII', '2\r\nok\r\n0\r\nX-Name: \xe9\r\n\r\n'],
  ])('are read: %s', async (_name, chunks) => {
    const outcome = await outcomeOf(HEAD + chunks)
    expect(outcome).toMatchObject({ kind: 'answered', response: { status: 200 } })
    expect(outcome?.kind === 'answered' && Buffer.from(outcome.response.body).toString()).toBe('ok')
  })
})
