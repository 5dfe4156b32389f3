import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { ClientMemoryBudget } from '../base/index.js'
import { readBody } from './body.js'

it('puts a body of megabytes together as it was sent', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const sent = Buffer.alloc(5_000_001, 'a number of letters that is no power of two')
  const received = new Promise<Uint8Array>((resolve, reject) => {
    server.once('request', (request: IncomingMessage, response) => {
      readBody(request, { bytes: sent.byteLength, ms: 60_000 }, { memory: new ClientMemoryBudget(), owner: 'somebody' })
        .then(resolve, reject)
        .finally(() => response.end())
    })
  })
  const { port } = server.address() as AddressInfo
  await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: sent, headers: { connection: 'close' } })
  expect(sent.equals(await received)).toBe(true)
})
