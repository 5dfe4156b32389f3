import { once } from 'node:events'
import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { paceRequests } from './paced-requests.js'
import { refuseSocket } from './refuse-socket.js'

/** A client that leaves its side of the connection open, and what the server has of it. */
async function stubborn(text: string, options: ServerOptions = {}, serve: RequestListener = () => undefined) {
  const clock = new ManualClock()
  const server = createServer(options, serve)
  paceRequests(server)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseSocket(socket, error.code, clock))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  atCleanup(() => {
    client.destroy()
    accepted.destroy()
    server.close()
  })
  client.write(text)
  let answer = ''
  client.on('data', (bytes: Buffer) => (answer += String(bytes)))
  await Promise.race([once(client, 'end'), once(client, 'close')])
  return { clock, accepted, answer }
}

it('closes the connection of a client that does not close it', async () => {
  const { clock, accepted, answer } = await stubborn('nonsense\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
  clock.advance(4_999)
  expect(accepted.destroyed).toBe(false)
  clock.advance(1)
  await waitFor(() => accepted.destroyed, { what: 'the end of the connection' })
  expect(clock.pendingTimers).toBe(0)
})

const TIMED = { headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 20 }
const UPLOAD = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nbody'
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

it('answers 408 when a body does not arrive in time', async () => {
  const { answer } = await stubborn(UPLOAD, TIMED)
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 408'])
})

it.each<[string, string, RequestListener]>([
  ['the answer has begun and the body does not arrive in time', UPLOAD, (_, response) => response.write('begun')],
  ['the answer is sent and the body does not arrive in time', UPLOAD, (_, response) => response.end('sent')],
  ['the answer has begun and nonsense follows', `${GET}nonsense`, (_, response) => response.write('begun')],
])('closes the connection without an answer when %s', async (_when, text, serve) => {
  const { accepted, answer } = await stubborn(text, TIMED, serve)
  await waitFor(() => accepted.destroyed, { what: 'the end of the connection' })
  expect(answer).not.toMatch(/HTTP\/1\.1 4/)
})

it('closes the connection without an answer when an earlier request has none yet', async () => {
  const { accepted, answer } = await stubborn(`${GET}nonsense`)
  await waitFor(() => accepted.destroyed, { what: 'the end of the connection' })
  expect(answer).toBe('')
})

it('answers 408 when a request does not arrive in time, because SDKs take a 400 for the end of a run', async () => {
  const { answer } = await stubborn('GET / HTTP/1.1\r\n', TIMED)
  expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
  expect(answer).toContain('{"error":"The request did not arrive in time. Send it again."}')
})

it('refuses few of thousands in one turn of the event loop', async () => {
  let refused = 0
  const refuse = (): void => {
    const write = (_bytes: Buffer, _encoding: string, done: () => void): void => {
      refused++
      const until = performance.now() + 4
      while (performance.now() < until) {
        // keeps the process busy
      }
      done()
    }
    refuseSocket(new Duplex({ read: () => undefined, write }), undefined, new ManualClock())
  }
  for (let sockets = 0; sockets < 20; sockets++) refuse()
  expect(refused).toBeLessThan(5)
  await waitFor(() => refused === 20, { what: 'the others' })
})
