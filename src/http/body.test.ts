import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { HeldMemory } from '../base/index.js'
import { readBody, readPieces } from './body.js'

it('puts a body of megabytes together as it was sent', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const sent = Buffer.alloc(5_000_001, 'a number of letters that is no power of two')
  const received = new Promise<Uint8Array>((resolve, reject) => {
    server.once('request', (request: IncomingMessage, response) => {
      readBody(request, { bytes: sent.byteLength, ms: 60_000 }, { memory: new HeldMemory(), owner: 'somebody' })
        .then(resolve, reject)
        .finally(() => response.end())
    })
  })
  const { port } = server.address() as AddressInfo
  await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: sent, headers: { connection: 'close' } })
  expect(sent.equals(await received)).toBe(true)
})

it('shows the pieces of a body on the way, and reads on when whoever looks at them is ready', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const sent = Buffer.alloc(3_000_001, 'another number of letters')
  const shown: Uint8Array[] = []
  let isReady = true
  const look = async () => {
    isReady = false
    await new Promise((resolve) => setImmediate(resolve))
    isReady = true
  }
  const received = new Promise<readonly Uint8Array[]>((resolve, reject) => {
    server.once('request', (request: IncomingMessage, response) => {
      const account = { memory: new HeldMemory(), owner: 'somebody' }
      readPieces(request, { bytes: sent.byteLength, ms: 60_000 }, account, (piece) => {
        if (!isReady) reject(new Error('a piece came too early'))
        shown.push(piece)
        return look()
      })
        .then(resolve, reject)
        .finally(() => response.end())
    })
  })
  const { port } = server.address() as AddressInfo
  await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: sent, headers: { connection: 'close' } })
  expect(sent.equals(Buffer.concat(await received))).toBe(true)
  expect(sent.equals(Buffer.concat(shown))).toBe(true)
})
