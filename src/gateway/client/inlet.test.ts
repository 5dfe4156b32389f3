import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Server } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { isLent } from '../resp/lent-memory.js'
import { type Inlet, takeInlets } from './inlet.js'

let server: Server
let inlets: Inlet[]
let received: { readonly text: string; readonly lent: boolean }[]

const take = (inlet: Inlet): void => {
  inlets.push(inlet)
  inlet.receive = (memory, length) =>
    received.push({ text: memory.toString('latin1', 0, length), lent: isLent(memory) })
  inlet.socket.on('error', () => {})
  atCleanup(() => void inlet.socket.destroy())
}

const listen = async (): Promise<void> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}

async function greet(): Promise<void> {
  const client = createConnection((server.address() as AddressInfo).port, '127.0.0.1')
  atCleanup(() => void client.destroy())
  client.write('hello')
  await waitFor(() => received.length === 1, { what: 'the bytes of the client' })
  inlets[0]?.settle()
  inlets[0]?.socket.write('welcome')
  const [answer] = await once(client, 'data')
  expect(String(answer)).toBe('welcome')
  client.end()
  await waitFor(() => inlets[0]?.socket.readableEnded === true, { what: 'the end of the input' })
}

beforeEach(() => {
  inlets = []
  received = []
  server = createServer({ allowHalfOpen: true })
  atCleanup(() => void server.close())
})

describe('a connection that a server accepts', () => {
  it('is read into the memory that all connections share', async () => {
    await listen()
    takeInlets(server, take)
    await greet()
    expect(received).toEqual([{ text: 'hello', lent: true }])
  })

  it('is read by its socket where the internals of Node cannot be used', async () => {
    takeInlets(server, take)
    await listen()
    await greet()
    expect(received).toEqual([{ text: 'hello', lent: false }])
  })
})
