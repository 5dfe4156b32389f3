import { once } from 'node:events'
import { createServer, type ServerOptions } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { refuseSocket } from './refuse-socket.js'

/** A client that leaves its side of the connection open, and what the server has of it. */
async function stubborn(text: string, options: ServerOptions = {}) {
  const clock = new ManualClock()
  const server = createServer(options)
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
  await once(client, 'end')
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

it('answers 408 when a request does not arrive in time, because SDKs take a 400 for the end of a run', async () => {
  const timed = { headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 20 }
  const { answer } = await stubborn('GET / HTTP/1.1\r\n', timed)
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
