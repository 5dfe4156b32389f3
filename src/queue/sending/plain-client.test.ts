import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { tempDir, waitFor } from '../../../test/support/index.js'
import { switchNodeInternals } from '../../base/node-internals.js'
import { OutgoingRequest } from './outgoing-request.js'
import {
  listening,
  newClient,
  OK,
  received,
  Sent,
  startDestination,
  writePieces,
} from './testing/scripted-destination.js'

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
    await writePieces(socket, [chunked.slice(0, 20), chunked.slice(20, 70), ...chunked.slice(70)])
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

describe('a response that is not plain', () => {
  it('may be one whose head arrives in many pieces', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    await writePieces(socket, [...OK])
    expect((await sent.ended()).slice(-2)).toEqual(['200', 'end'])
    expect([sent.body, client.takes(sent.request)]).toEqual(['ok', false])
  })

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

it('the plain client leaves requests that are not plain to undici', () => {
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

it('the plain client sends over TLS, and reuses connections there', async () => {
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
