import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, Socket, type SocketConstructorOpts } from 'node:net'
import { describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { readDirectly } from './direct-reader.js'
import { handleOf } from './server-handle.js'
import { type StreamInternals, streamInternals } from './stream-internals.js'

interface Connection {
  readonly client: Socket
  readonly socket: Socket
  /** What was taken before the socket, and what the socket passed on. */
  readonly directly: string[]
  readonly bySocket: string[]
}

/** A connection that is read into memory of ours, with or without what Node keeps of streams. */
async function connect(internals: StreamInternals | undefined): Promise<Connection> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  atCleanup(() => void server.close())
  await once(server, 'listening')
  const accepted = nextHandle(server)
  const client = createConnection((server.address() as AddressInfo).port, '127.0.0.1')
  const handle = await accepted
  const buffer = Buffer.alloc(1024)
  const directly: string[] = []
  const bySocket: string[] = []
  const callback = (length: number): boolean => bySocket.push(buffer.toString('latin1', 0, length)) > 0
  const socket = new Socket({ handle, allowHalfOpen: true, onread: { buffer, callback } } as SocketConstructorOpts)
  readDirectly(handle, internals, (length) => directly.push(buffer.toString('latin1', 0, length)))
  for (const end of [client, socket]) {
    end.on('error', () => {})
    atCleanup(() => void end.destroy())
  }
  return { client, socket, directly, bySocket }
}

function nextHandle(server: ReturnType<typeof createServer>): Promise<unknown> {
  const handle = handleOf(server)
  if (!handle) throw new Error('Node has changed')
  return new Promise((resolve) => {
    handle.onconnection = (_error, connection) => resolve(connection)
  })
}

describe.each([
  ['before its socket', streamInternals, 'directly'],
  ['by its socket where Node keeps nothing of streams', undefined, 'bySocket'],
] as const)('what a connection is sent is taken %s', (_how, internals, taker) => {
  it('in order, and its end comes by the socket', async () => {
    const connection = await connect(internals)
    const { client, socket } = connection
    const ended = once(socket, 'end')
    client.write('one')
    await waitFor(() => connection[taker].length === 1, { what: 'the first bytes' })
    client.end('two')
    await ended
    expect(connection[taker]).toEqual(['one', 'two'])
    expect(connection[taker === 'directly' ? 'bySocket' : 'directly']).toEqual([])
  })

  it('and its loss comes by the socket', async () => {
    const { client, socket } = await connect(internals)
    const lost = once(socket, 'error')
    client.resetAndDestroy()
    await expect(lost).resolves.toMatchObject([{ code: 'ECONNRESET' }])
  })
})

it('leaves alone what is no connection', () => {
  for (const handle of [undefined, {}, { onread: 'nothing' }])
    expect(() => readDirectly(handle, streamInternals, () => {})).not.toThrow()
})
