import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import Type from 'typebox'
import { expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ClientMemoryBudget, OwnerConcurrency } from '../base/index.js'
import { usedBytes } from '../base/testing/memory.js'
import { endpoint } from '../contract/endpoint.js'
import { readBody } from './body.js'
import { route } from './index.js'
import { listener } from './testing/listener.js'

it('the server joins a body of megabytes correctly', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const sent = Buffer.alloc(5_000_001, 'a number of letters that is no power of two')
  const received = new Promise<Uint8Array>((resolve, reject) => {
    server.once('request', (request: IncomingMessage, response) => {
      const account = { memory: new ClientMemoryBudget(), large: new OwnerConcurrency(1), owner: 'somebody' }
      readBody(request, { bytes: sent.byteLength, ms: 60_000 }, account)
        .then(resolve, reject)
        .finally(() => response.end())
    })
  })
  const { port } = server.address() as AddressInfo
  await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: sent, headers: { connection: 'close' } })
  expect(sent.equals(await received)).toBe(true)
})

it('the server takes memory in proportion to a body, also for one in chunks of one byte', async () => {
  const CHUNKS = 200_000
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
  const [request]: IncomingMessage[] = await once(server, 'request')
  if (!request) throw new Error('no request has come')
  const account = { memory: new ClientMemoryBudget(), large: new OwnerConcurrency(1), owner: 'somebody' }
  const before = usedBytes()
  const reading = readBody(request, { bytes: CHUNKS, ms: 60_000 }, account)
  await once(request, 'resume')
  let heldBytes = 0
  request.on('data', (chunk: Buffer) => (heldBytes += chunk.length))
  const bytes = Buffer.from('1\r\nx\r\n'.repeat(CHUNKS))
  socket.write(bytes)
  await waitFor(() => heldBytes === CHUNKS, { what: 'the chunks' })
  expect(usedBytes() - before).toBeLessThan(20 * CHUNKS + bytes.length)
  socket.write('0\r\n\r\n')
  expect(Buffer.from(await reading).equals(Buffer.alloc(CHUNKS, 'x'))).toBe(true)
})

const take = endpoint({
  id: 'take',
  service: 'queue',
  topic: 'Server',
  path: '/v2/take',
  errors: [],
  summary: 'Take',
  description: 'Takes a body.',
  method: 'POST',
  auth: 'none',
  access: 'write',
  body: { kind: 'raw' },
  success: { status: 200, description: 'taken', body: Type.Any() },
} as const)

it('the server limits the time for receiving a body, also on endpoints without authentication', async () => {
  const server = listener({
    bodyTimeoutMs: 20,
    routes: [route(take, async () => ({}))],
  })
  await server.start()
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      let text = ''
      const socket = connect(server.port, '127.0.0.1', () => {
        socket.write('POST /v2/take HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly a part')
      })
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('error', reject)
      socket.on('close', () => resolve(text))
    })
    expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    expect(answer).toContain('The request body was not complete within 0.02 s.')
  } finally {
    await server.stop()
  }
})

it('the server evicts an incomplete body when incomplete bodies exceed the memory budget', async () => {
  const LIMIT_BYTES = 1_000_000
  const server = listener({
    bodyLimitBytes: LIMIT_BYTES,
    memory: new ClientMemoryBudget(LIMIT_BYTES),
    routes: [route(take, async () => ({}))],
  })
  await server.start()
  const sockets = Array.from({ length: 4 }, () => connect(server.port, '127.0.0.1'))
  try {
    const answers = sockets.map((socket) => {
      socket.on('error', () => {})
      socket.write(`POST /v2/take HTTP/1.1\r\nHost: x\r\nContent-Length: ${LIMIT_BYTES}\r\n\r\n${'x'.repeat(500_000)}`)
      return new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString('latin1'))))
    })
    const answer = await Promise.race(answers)
    expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    expect(answer).toContain('The buffers of the server for clients that send or read slowly are full')
  } finally {
    for (const socket of sockets) socket.destroy()
    await server.stop()
  }
})

it('the server receives large bodies of one client in turns, and refuses none', async () => {
  const BYTES = 1_500_000
  const server = listener({
    bodyLimitBytes: BYTES,
    memory: new ClientMemoryBudget(3_000_000),
    routes: [route(take, async () => ({}))],
  })
  await server.start()
  onTestFinished(() => server.stop(0))
  const sockets = Array.from({ length: 5 }, () => connect(server.port, '127.0.0.1'))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const answers = sockets.map((socket) => {
    socket.write(`POST /v2/take HTTP/1.1\r\nHost: x\r\nContent-Length: ${BYTES}\r\n\r\n${'x'.repeat(BYTES - 1)}`)
    return new Promise<string>((resolve) =>
      socket.once('data', (chunk) => resolve(chunk.toString('latin1').slice(9, 12))),
    )
  })
  const [gone, ...others] = sockets
  gone?.destroy()
  for (const socket of others) socket.write('x')
  expect(await Promise.all(answers.slice(1))).toEqual(['200', '200', '200', '200'])
})

it('the server closes a connection whose request was answered and never completed', async () => {
  const server = listener({
    bodyTimeoutMs: 20,
    routes: [route({ ...take, auth: 'bearer', scopes: [] }, async () => ({}))],
  })
  await server.start()
  onTestFinished(() => server.stop(0))
  for (const target of ['POST /v2/take', 'POST /nothing', 'GET /health']) {
    const socket = connect(server.port, '127.0.0.1').resume()
    socket.write(`${target} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly a part`)
    await once(socket, 'close')
  }
})
