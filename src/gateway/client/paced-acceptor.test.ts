import { once } from 'node:events'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { PacedAcceptor } from './paced-acceptor.js'

const MANY = 120
const BUSY_MS = 2

interface Listening {
  readonly server: Server
  readonly port: number
  /** Connections that the server has accepted. */
  readonly taken: Socket[]
}

async function listenPaced(acceptor: PacedAcceptor): Promise<Listening> {
  const taken: Socket[] = []
  const server = createServer((socket) => taken.push(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  acceptor.pace(server)
  atCleanup(() => {
    for (const socket of taken) socket.destroy()
    server.close()
  })
  const address = server.address()
  return { server, taken, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

function connectMany(port: number): Socket[] {
  const sockets = Array.from({ length: MANY }, () =>
    createConnection({ port, host: '127.0.0.1' }).on('error', () => {}),
  )
  atCleanup(() => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}

it('a server accepts a few of the waiting connections in each turn of the event loop, and all in the end', async () => {
  const { taken, port } = await listenPaced(new PacedAcceptor())
  connectMany(port)
  let most = 0
  for (let before = 0; before < MANY; before = taken.length) {
    await new Promise((resolve) => setImmediate(resolve))
    const until = performance.now() + BUSY_MS
    while (performance.now() < until) {
      // Other clients keep the process busy in every turn.
    }
    most = Math.max(most, taken.length - before)
  }
  expect(taken.length).toBe(MANY)
  expect(most).toBeLessThan(MANY / 2)
})

it('the acceptor accepts connections of several servers in order of arrival', async () => {
  const acceptor = new PacedAcceptor()
  const [first, second] = [await listenPaced(acceptor), await listenPaced(acceptor)]
  connectMany(first.port)
  connectMany(second.port)
  await waitFor(() => first.taken.length + second.taken.length === 2 * MANY, { what: 'all connections to be accepted' })
  expect(acceptor.waiting).toBe(0)
})

it('the acceptor closes the waiting connections of a server that closes, and no others', async () => {
  const acceptor = new PacedAcceptor()
  const [closing, staying] = [await listenPaced(acceptor), await listenPaced(acceptor)]
  closing.server.once('connection', () => {
    closing.server.close()
    acceptor.forget(closing.server)
    for (const socket of closing.taken) socket.destroy()
  })
  const [lost, kept] = [connectMany(closing.port), connectMany(staying.port)]
  await waitFor(() => staying.taken.length === MANY, { what: 'the other connections to be accepted' })
  await waitFor(() => lost.every(({ closed }) => closed), { what: 'the waiting connections to be closed' })
  expect(kept.some(({ closed }) => closed)).toBe(false)
  expect(closing.taken.length).toBeLessThan(MANY)
})
