import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, createConnection } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { usedBytes } from '../../base/testing/memory.js'
import { readBody } from './request-body.js'

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
const CHUNKS = 200_000

it('a body in chunks of one byte takes memory in proportion to its length', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  atCleanup(() => void server.close())
  await once(server, 'listening')
  const socket = createConnection((server.address() as AddressInfo).port, '127.0.0.1')
  atCleanup(() => void socket.destroy())
  socket.write(HEAD)
  const [request]: IncomingMessage[] = await once(server, 'request')
  if (!request) throw new Error('no request has come')
  let [heldBytes, body] = [0, '']
  const onBodyHeld = (bytes: number): boolean => {
    heldBytes += bytes
    return true
  }
  const before = usedBytes()
  readBody(request, CHUNKS, {
    onBody: (whole) => (body = whole.toString()),
    onBodyRefused: (error) => expect.unreachable(error.message),
    onBodyHeld,
  })
  const bytes = Buffer.from('1\r\nx\r\n'.repeat(CHUNKS))
  socket.write(bytes)
  await waitFor(() => heldBytes === CHUNKS, { what: 'the chunks' })
  expect(usedBytes() - before).toBeLessThan(20 * CHUNKS + bytes.length)
  socket.write('0\r\n\r\n')
  await waitFor(() => body.length === CHUNKS, { what: 'the body' })
  expect(/^x+$/.test(body)).toBe(true)
})
