import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { atCleanup, tempDir, waitFor } from '../../../test/support/index.js'
import { TargetGate } from '../../base/index.js'
import { switchNodeInternals } from '../../base/node-internals.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { OutgoingRequest, type RequestController } from './exchange.js'
import { PlainClient } from './plain-client.js'

/** What a destination has received on one connection. */
interface Arrival {
  readonly socket: Socket
  text: string
}

interface Destination {
  readonly origin: string
  readonly arrivals: Arrival[]
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const KEPT = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=8\r\nContent-Length: 2\r\n\r\nok'

async function listening(server: Server, protocol: string): Promise<Destination> {
  const arrivals: Arrival[] = []
  server.on(protocol === 'https' ? 'secureConnection' : 'connection', (socket: Socket) => {
    const arrival = { socket, text: '' }
    arrivals.push(arrival)
    socket.on('error', () => undefined)
    socket.setEncoding('latin1').on('data', (text: string) => (arrival.text += text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atCleanup(() => {
    for (const { socket } of arrivals) socket.destroy()
    server.close()
  })
  return { origin: `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`, arrivals }
}

const startDestination = (): Promise<Destination> => listening(createServer(), 'http')

function newClient(connectionsPerHost = 10) {
  const clock = new ManualClock()
  const client = new PlainClient({ clock, gate: new TargetGate('everything'), connectionsPerHost })
  atCleanup(() => client.close())
  return { client, clock }
}

/** A request that is sent, and what its handler has heard. */
class Sent {
  readonly request: OutgoingRequest
  readonly heard: string[] = []
  controller: RequestController | undefined
  body = ''

  constructor(
    client: PlainClient,
    origin: string,
    { body = 'hello', headers = ['X-A', 'b'], path = '/hook?a=b' } = {},
  ) {
    this.request = new OutgoingRequest(origin, path, { method: 'POST', headers, body: Buffer.from(body) })
    expect(client.takes(this.request)).toBe(true)
    client.send(this.request, this)
  }

  onRequestStart(controller: RequestController): void {
    this.controller = controller
    this.request.connection?.beginRequest()
    this.heard.push('start')
  }

  onResponseStart(_controller: RequestController, status: number): void {
    this.heard.push(String(status))
  }

  onResponseData(_controller: RequestController, chunk: Buffer): void {
    this.body += chunk.toString('latin1')
  }

  onResponseEnd(): void {
    this.heard.push('end')
  }

  onResponseError(_controller: RequestController, error: Error): void {
    this.heard.push(error.message)
  }

  get hasEnded(): boolean {
    return this.heard.length > 0 && !/^(?:start|\d+)$/.test(this.heard.at(-1) ?? '')
  }

  async ended(): Promise<readonly string[]> {
    await waitFor(() => this.hasEnded, { what: 'the end of the request' })
    return this.heard
  }
}

/** Waits until a destination has this many connections, and the last one this many requests. */
async function received({ arrivals }: Destination, connections: number, requests = 1): Promise<Arrival> {
  const hasCome = () =>
    arrivals.length >= connections && (arrivals.at(-1)?.text.match(/hello/g) ?? []).length >= requests
  await waitFor(hasCome, { what: `request ${requests} on connection ${connections}` })
  const last = arrivals.at(-1)
  if (!last || arrivals.length > connections) throw new Error(`${arrivals.length} connections have come`)
  return last
}

afterEach(() => switchNodeInternals('on'))

describe.each(['on', 'off'] as const)('a plain request, with undocumented members of Node %s', (internals) => {
  it('is written as a whole, and its connection is used again', async () => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const first = new Sent(client, destination.origin)
    const { socket, text } = await received(destination, 1)
    const host = destination.origin.slice('http://'.length)
    expect(text).toBe(
      `POST /hook?a=b HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\nX-A: b\r\ncontent-length: 5\r\n\r\nhello`,
    )
    socket.write(OK)
    expect(await first.ended()).toEqual(['start', '200', 'end'])
    const second = new Sent(client, destination.origin)
    await received(destination, 1, 2)
    socket.write(OK)
    expect([await second.ended(), first.body, second.body]).toEqual([['start', '200', 'end'], 'ok', 'ok'])
  })

  it('gets a response in pieces, and one in chunks', async () => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const chunked =
      'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n2;x=y\r\nok\r\n0\r\nA: b\r\n\r\n'
    for (const byte of chunked) await new Promise((resolve) => socket.write(byte, resolve))
    expect([await sent.ended(), sent.body]).toEqual([['start', '201', 'end'], 'fourok'])
    const next = new Sent(client, destination.origin)
    await received(destination, 1, 2)
    socket.write(OK)
    expect(await next.ended()).toEqual(['start', '200', 'end'])
  })

  it('has a large body, and a large response', async () => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const body = `${'x'.repeat(3_000_000)}hello`
    const sent = new Sent(client, destination.origin, { body })
    const { socket, text } = await received(destination, 1)
    expect(text.endsWith(body)).toBe(true)
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    expect([await sent.ended(), sent.body === body]).toEqual([['start', '200', 'end'], true])
  })

  it('gets another connection while the first is busy, and only then', async () => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const both = [new Sent(client, destination.origin), new Sent(client, destination.origin)]
    await received(destination, 2)
    await waitFor(() => destination.arrivals.every(({ text }) => text.includes('hello')), { what: 'both requests' })
    for (const { socket } of destination.arrivals) socket.write(OK)
    for (const one of both) await one.ended()
    const third = new Sent(client, destination.origin)
    await waitFor(() => destination.arrivals.some(({ text }) => text.split('hello').length > 2), { what: 'the third' })
    expect(destination.arrivals).toHaveLength(2)
    for (const { socket } of destination.arrivals) socket.end(OK)
    await third.ended()
  })

  it.each([
    ['asked for in the head', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'],
    ['a short time to live', 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 2\r\n\r\nok'],
    ['bytes behind the response', `${OK}more`],
  ])('has a connection that ends after %s', async (_why, answer) => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    socket.write(answer)
    expect([await sent.ended(), sent.body]).toEqual([['start', '200', 'end'], 'ok'])
    await waitFor(() => socket.readableEnded, { what: 'the end of the connection' })
    const next = new Sent(client, destination.origin)
    const second = await received(destination, 2)
    second.socket.write(OK)
    expect(await next.ended()).toEqual(['start', '200', 'end'])
  })

  it.each([
    ['begins to answer', '', 'other side closed'],
    ['has answered completely', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', 'other side closed'],
    ['ends a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok', 'other side closed'],
  ])('fails when the destination closes before it %s', async (_what, answer, error) => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    socket.end(answer)
    expect((await sent.ended()).at(-1)).toBe(error)
  })

  it('fails when its response is malformed', async () => {
    switchNodeInternals(internals)
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfour\r\n')
    expect(await sent.ended()).toEqual(['start', '200', 'the chunks of its body are malformed'])
    await waitFor(() => socket.readableEnded, { what: 'the end of the connection' })
  })
})

describe('a plain request that is ended', () => {
  it.each([
    ['before the response', ''],
    ['within the head', 'HTTP/1.1 200'],
    ['within the body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok'],
    ['within a response that undici reads', 'HTTP/1.1 200 OK\r\n\r\nok'],
  ])('%s ends its connection, and hears of nothing else', async (_when, answer) => {
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    await new Promise((resolve) => socket.write(answer, resolve))
    if (answer.includes('ok')) await waitFor(() => sent.body === 'ok', { what: 'the body' })
    sent.controller?.abort(new Error('no longer wanted'))
    expect((await sent.ended()).at(-1)).toBe('no longer wanted')
    await waitFor(() => socket.readableEnded || socket.destroyed, { what: 'the end of the connection' })
    expect(sent.heard.filter((text) => text === 'no longer wanted')).toHaveLength(1)
  })

  it('as soon as it begins is not written', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const start = vi.spyOn(Sent.prototype, 'onRequestStart').mockImplementation((controller) => {
      controller.abort(new Error('too late'))
    })
    const sent = new Sent(client, destination.origin)
    expect(await sent.ended()).toEqual(['too late'])
    start.mockRestore()
    await waitFor(() => destination.arrivals[0]?.socket.readableEnded, { what: 'the end of the connection' })
    expect(destination.arrivals[0]?.text).toBe('')
  })

  it('by the end of the client fails, wherever it is', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const asking = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const connecting = new Sent(client, destination.origin)
    client.close()
    expect(await connecting.ended()).toEqual(['The client is destroyed'])
    expect(await asking.ended()).toEqual(['start', 'The client is destroyed'])
    await waitFor(() => socket.readableEnded || socket.destroyed, { what: 'the end of the connection' })
    expect(client.takes(asking.request)).toBe(false)
  })
})

describe('a connection that waits', () => {
  /** A client whose connection has answered once. */
  async function waiting(answer = OK) {
    const destination = await startDestination()
    const { client, clock } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    socket.write(answer)
    await sent.ended()
    return { destination, client, clock, socket, sent }
  }

  it('ends after four seconds, or two seconds before the destination would end it', async () => {
    for (const [answer, seconds] of [
      [OK, 4],
      [KEPT, 6],
    ] as const) {
      const { clock, socket } = await waiting(answer)
      clock.advance((seconds - 1) * 1_000)
      expect(socket.readableEnded).toBe(false)
      clock.advance(1_000)
      await waitFor(() => socket.readableEnded, { what: 'the end of the connection' })
      clock.advance(1_000)
      expect(clock.pendingTimers).toBe(0)
    }
  })

  it('rests first, so that the next request sees that the destination has closed it', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const next = new Promise<Sent>((resolve) => {
      sent.onResponseEnd = () => resolve(new Sent(client, destination.origin))
    })
    socket.end(OK)
    expect((await next).request.connection).toBeUndefined()
    const second = await received(destination, 2)
    second.socket.write(OK)
    expect(await (await next).ended()).toEqual(['start', '200', 'end'])
  })

  it('rests no longer than necessary, where there may be no other', async () => {
    const destination = await startDestination()
    const { client } = newClient(1)
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const next = new Promise<Sent>((resolve) => {
      sent.onResponseEnd = () => resolve(new Sent(client, destination.origin))
    })
    socket.write(OK)
    expect((await next).request.connection).toBe(sent.request.connection)
    await received(destination, 1, 2)
    socket.end(OK)
    expect(await (await next).ended()).toEqual(['start', '200', 'end'])
  })

  it('ends when bytes come that nobody has asked for', async () => {
    const { socket } = await waiting()
    socket.write(OK)
    await waitFor(() => socket.readableEnded, { what: 'the end of the connection' })
  })

  it('that was closed fails the next request in a way that allows to repeat it', async () => {
    const { destination, client, socket, sent } = await waiting()
    const next = new Sent(client, destination.origin)
    await received(destination, 1, 2)
    expect(next.request.connection).toBe(sent.request.connection)
    socket.resetAndDestroy()
    await next.ended()
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    expect(next.request.connection?.wasClosedWhileReused(reset, true)).toBe(true)
  })
})

describe('a response that is not plain', () => {
  it('is read by undici, as are those that follow, for ten minutes', async () => {
    const destination = await startDestination()
    const { client, clock } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    await new Promise((resolve) => socket.write('HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n', resolve))
    socket.end('HTTP/1.1 200 OK\r\n\r\nuntil the end')
    expect((await sent.ended()).slice(-2)).toEqual(['200', 'end'])
    expect(sent.body).toBe('until the end')
    expect(client.takes(sent.request)).toBe(false)
    clock.advance(599_000)
    expect(client.takes(sent.request)).toBe(false)
    clock.advance(1_000)
    expect(client.takes(sent.request)).toBe(true)
  })

  it('fails when it is no HTTP, and when its connection breaks', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    socket.write('SSH-2.0-OpenSSH_9.2\r\n')
    expect((await sent.ended()).at(-1)).toContain('does not match the HTTP/1.1 protocol')
    const other = await startDestination()
    const broken = new Sent(client, other.origin)
    const arrival = await received(other, 1)
    arrival.socket.write('HTTP/1.1 200 OK\r\nX-Empty: \r\nContent-Length: 9\r\n\r\nhalf')
    await waitFor(() => broken.body === 'half', { what: 'the half' })
    arrival.socket.resetAndDestroy()
    expect((await broken.ended()).at(-1)).toContain('ECONNRESET')
  })
})

it('refuses no request, and leaves to undici what is not plain', () => {
  const { client } = newClient()
  const takes = (method: string, headers: string[], path = '/') =>
    client.takes(new OutgoingRequest('http://127.0.0.1:1', path, { method, headers, body: undefined }))
  expect(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].every((method) => takes(method, []))).toBe(true)
  expect(['HEAD', 'CONNECT', 'get', 'GET / HTTP/1.1\r\nX:'].some((method) => takes(method, []))).toBe(false)
  for (const name of ['Host', 'connection', 'Content-Length', 'Transfer-Encoding', 'Expect', 'a b', 'a:', ''])
    expect([name, takes('POST', [name, 'a'])]).toEqual([name, false])
  for (const value of ['a\r\nb: c', 'a\nb', 'a\0', 'ł']) expect(takes('POST', ['X-A', value])).toBe(false)
  for (const path of ['', 'a', '/a b', '/a\r\n']) expect(takes('POST', [], path)).toBe(false)
})

it('sends over TLS, and uses connections again there', async () => {
  const folder = tempDir()
  const [key, cert] = ['key', 'cert'].map((name) => join(folder, `${name}.pem`))
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1']
  const how = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', ...subject]
  execFileSync('openssl', [...how, '-keyout', key ?? '', '-out', cert ?? ''], { stdio: 'ignore' })
  const server = createTlsServer({ key: readFileSync(key ?? ''), cert: readFileSync(cert ?? '') })
  const destination = await listening(server, 'https')
  const { client } = newClient()
  const stranger = new Sent(client, destination.origin)
  expect((await stranger.ended()).at(-1)).toContain('self-signed certificate')
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const first = new Sent(client, destination.origin)
  const { socket } = await received(destination, 1)
  socket.write(OK)
  expect(await first.ended()).toEqual(['start', '200', 'end'])
  const second = new Sent(client, destination.origin)
  await received(destination, 1, 2)
  socket.write(OK)
  expect([await second.ended(), second.body]).toEqual([['start', '200', 'end'], 'ok'])
  vi.unstubAllEnvs()
})
