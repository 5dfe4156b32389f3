import { createConnection } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { expect, it } from 'vitest'
import { freePort, waitFor } from '../../../test/support/index.js'
import { ClientMemoryBudget } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { recordedLog } from '../../telemetry/testing/recorded-log.js'
import { ForwardingPorts } from './forwarding-ports.js'
import { PacedAcceptor } from './paced-acceptor.js'

it('a port closes after the replies that clients wait for, or after the grace period if the home goes on', async () => {
  const port = await freePort()
  const homes: { readonly stream: Duplex; received: string }[] = []
  const connect = async (): Promise<Duplex> => {
    const [here, stream] = duplexPair({ allowHalfOpen: true })
    const home = { stream, received: '' }
    stream.on('data', (chunk) => (home.received += String(chunk)))
    homes.push(home)
    return here
  }
  const clock = new ManualClock()
  const ports = new ForwardingPorts({
    settings: { host: '127.0.0.1' },
    ports: { follow: (follower) => follower(['db']), find: () => ({ port, tls: false, readRegions: [] }), connect },
    acceptor: new PacedAcceptor(),
    memory: new ClientMemoryBudget(),
    clock,
    logger: recordedLog(['warn', 'error']).logger,
    settled: async () => undefined,
  })
  await ports.start()
  const clients = [0, 1].map(() => ({
    socket: createConnection({ port, host: '127.0.0.1' }),
    received: '',
    ended: false,
  }))
  for (const client of clients) {
    client.socket.on('data', (chunk) => (client.received += String(chunk)))
    client.socket.on('end', () => (client.ended = true))
    client.socket.write('BLPOP list 0\r\n')
  }
  await waitFor(() => homes.length === 2 && homes.every(({ received }) => received !== ''), { what: 'the commands' })
  const [first, second] = homes
  let isClosed = false
  const closing = ports.close(5_000).then(() => (isClosed = true))
  await waitFor(() => homes.every(({ stream }) => stream.readableEnded), { what: 'the end of what clients send' })
  first?.stream.end('$-1\r\n')
  await waitFor(() => clients.some(({ ended }) => ended), { what: 'a client to be closed' })
  expect(clients.map(({ received }) => received).sort()).toEqual(['', '$-1\r\n'])
  expect([isClosed, second?.stream.destroyed]).toEqual([false, false])
  clock.advance(5_000)
  await closing
  await waitFor(() => clients.every(({ ended, socket }) => ended || socket.destroyed), { what: 'both to be closed' })
})
