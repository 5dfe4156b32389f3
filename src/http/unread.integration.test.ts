import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import Type from 'typebox'
import { expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ClientMemoryBudget } from '../base/index.js'
import { endpoint } from '../contract/endpoint.js'
import { route } from './index.js'
import { listener } from './testing/listener.js'

const ANSWER_BYTES = 32 * 2 ** 20
const things = (path: string) =>
  endpoint({
    id: path.slice(1),
    service: 'queue',
    topic: 'Server',
    method: 'GET',
    path,
    auth: 'none',
    access: 'read',
    summary: '',
    description: '',
    body: { kind: 'none' },
    errors: [],
    success: { status: 200, description: '', body: Type.Unknown() },
  } as const)

it.each(['/text', '/list', '/bytes'])('the server disconnects clients that leave too much unread: %s', async (path) => {
  let asked = 0
  const answer = (value: unknown) => async () => {
    asked++
    return value
  }
  const server = listener({
    routes: [
      route(things('/text'), answer({ text: 'x'.repeat(ANSWER_BYTES) })),
      route(things('/list'), answer({ list: Array.from({ length: 32 }, () => ({ text: 'x'.repeat(2 ** 20) })) })),
      route(things('/bytes'), answer(new Uint8Array(ANSWER_BYTES))),
    ],
    memory: new ClientMemoryBudget(1.5 * ANSWER_BYTES),
  })
  await server.start()
  onTestFinished(() => server.stop(0))
  const sockets: Socket[] = []
  for (let client = 1; client <= 3; client++) {
    const socket = connect(server.port, '127.0.0.1').pause()
    socket.on('error', () => undefined)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    sockets.push(socket)
    await waitFor(() => asked === client, { what: 'the request' })
    await once(socket, 'readable')
  }
  const received = await Promise.all(sockets.map(bytesOf))
  const whole = received.filter((bytes) => bytes > ANSWER_BYTES).length
  expect([whole > 0, whole < 3]).toEqual([true, true])
})

async function bytesOf(socket: Socket): Promise<number> {
  let bytes = 0
  socket.on('data', (chunk) => (bytes += chunk.length)).resume()
  await once(socket, 'close')
  return bytes
}
