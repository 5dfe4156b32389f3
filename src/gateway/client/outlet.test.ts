import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { DirectWriter } from '../../base/index.js'
import { ReadMemory } from '../resp/lent-memory.js'
import { Inlet, takeInlets } from './inlet.js'
import { Outlet } from './outlet.js'

const MIB = 2 ** 20
const BOUNDS = { slowBytes: MIB, lostBytes: 64 * MIB }

interface Pair {
  readonly inlet: Inlet
  readonly outlet: Outlet
  readonly client: Socket
  /** How often the client has read everything. */
  drains(): number
}

/** A client that does not read yet, and its outlet, which writes below the socket or through it. */
async function connect(manner: 'direct' | 'through the socket'): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true })
  atCleanup(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = new Promise<Inlet>((resolve) => {
    if (manner === 'direct') takeInlets(server, resolve)
    else server.on('connection', (socket) => resolve(Inlet.of(socket)))
  })
  const client = createConnection((server.address() as AddressInfo).port, '127.0.0.1').pause()
  client.on('error', () => {})
  const inlet = await accepted
  inlet.socket.on('error', () => {})
  atCleanup(() => {
    client.destroy()
    inlet.socket.destroy()
  })
  expect(DirectWriter.of(inlet.handle, { settled: () => {} }) !== undefined).toBe(manner === 'direct')
  let drains = 0
  const outlet = new Outlet(inlet, BOUNDS, { drained: () => drains++, grew: () => {} })
  return { inlet, outlet, client, drains: () => drains }
}

/** Everything that the client receives until the connection ends. */
async function readAll(client: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of client) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe.each(['direct', 'through the socket'] as const)('bytes that are written %s', (manner) => {
  it('arrive whole and in order before the connection closes, also when the client reads late', async () => {
    const { inlet, outlet, client, drains } = await connect(manner)
    const pieces = [16 * MIB, 10, 3 * MIB, 2].map((bytes, i) => Buffer.alloc(bytes, 97 + i))
    expect(outlet.write(Buffer.from('first'))).toBe(false)
    expect(outlet.needsDrain).toBe(false)
    expect(pieces.map((piece) => outlet.write(piece))).toEqual([true, true, true, true])
    expect(outlet.isSlow && outlet.needsDrain).toBe(true)
    expect(drains()).toBe(0)
    inlet.socket.destroySoon()
    const arrived = await readAll(client)
    expect(arrived.equals(Buffer.concat([Buffer.from('first'), ...pieces]))).toBe(true)
  })

  it('no longer make the client slow once it has read them', async () => {
    const { outlet, client, drains } = await connect(manner)
    outlet.write(Buffer.alloc(16 * MIB))
    client.resume()
    await waitFor(() => drains() === 1, { what: 'the client to have read everything' })
    expect(outlet.isSlow || outlet.needsDrain).toBe(false)
    expect(outlet.write(Buffer.from('more'))).toBe(false)
  })

  it('can be lent', async () => {
    const { inlet, outlet, client } = await connect(manner)
    const memory = new ReadMemory()
    const sent: Buffer[] = []
    // More than the system takes for a client that does not read.
    for (let value = 0; value < 256; value++) {
      const view = memory.block.fill(value)
      sent.push(Buffer.from(view))
      outlet.write(view)
    }
    inlet.socket.destroySoon()
    expect((await readAll(client)).equals(Buffer.concat(sent))).toBe(true)
  })

  it('are dropped when the client disconnects', async () => {
    const { inlet, outlet, client, drains } = await connect(manner)
    outlet.write(Buffer.alloc(16 * MIB))
    client.resetAndDestroy()
    await waitFor(() => inlet.socket.closed, { what: 'the connection to be closed' })
    expect(outlet.write(Buffer.from('more'))).toBe(false)
    expect(drains()).toBe(0)
  })
})
