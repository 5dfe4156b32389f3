import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { Sender } from './sender.js'

/** What a destination does with a request: responds, or ends the connection. */
type Move = 'answer' | 'close' | 'reset' | 'half an answer'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const MOVES: Record<Move, (socket: Socket) => void> = {
  answer: (socket) => void socket.write(ANSWER),
  close: (socket) => void socket.end(),
  reset: (socket) => void socket.resetAndDestroy(),
  'half an answer': (socket) => void socket.end('HTTP/1.1 2'),
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** A destination with keep-alive connections that applies the n-th move to the n-th request. */
async function startDestination(moves: readonly Move[]) {
  const seen: string[] = []
  let connections = 0
  const server = createServer((socket) => {
    const number = ++connections
    socket.on('error', () => undefined)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (head < 0 || text.length < head + 4 + length) return
      seen.push(`${number}:${text.slice(head + 4)}`)
      text = ''
      MOVES[moves[seen.length - 1] ?? 'answer'](socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen }
}

const WAYS = [
  { way: 'with connections of its own', headers: [] },
  { way: 'through undici', headers: ['TE', 'trailers'] },
]

async function sendAll(moves: readonly Move[], bodies: readonly string[], headers: string[]) {
  const { url, seen } = await startDestination(moves)
  const sender = new Sender({ clock: systemClock, connectionsPerHost: 1, keepBytes: 10 })
  cleanups.unshift(() => sender.close())
  const kinds: string[] = []
  for (const text of bodies) {
    const request = { url, method: 'POST', headers, body: Buffer.from(text), timeoutMs: 10_000 }
    const outcome = await sender.send(request).outcome
    kinds.push(outcome?.kind ?? 'aborted')
  }
  return { kinds, seen }
}

describe.each(WAYS)('a sender $way', ({ headers }) => {
  it.each<Move>(['close', 'reset'])(
    'repeats a request on a new connection when a reused one ends with a %s',
    async (move) => {
      expect(await sendAll(['answer', move], ['a', 'b', 'c'], headers)).toEqual({
        kinds: ['answered', 'answered', 'answered'],
        seen: ['1:a', '1:b', '2:b', '3:c'],
      })
    },
  )

  it('repeats a request only once', async () => {
    const { kinds, seen } = await sendAll(['answer', 'reset', 'reset'], ['a', 'b'], headers)
    expect([kinds, seen]).toEqual([
      ['answered', 'unanswered'],
      ['1:a', '1:b', '2:b'],
    ])
  })

  it.each<Move>(['close', 'reset'])('does not repeat a request when a new connection ends with a %s', async (move) => {
    const { kinds, seen } = await sendAll([move], ['a'], headers)
    expect([kinds, seen]).toEqual([['unanswered'], ['1:a']])
  })

  it('does not repeat a request after the first byte of a response', async () => {
    const { kinds, seen } = await sendAll(['answer', 'half an answer'], ['a', 'b'], headers)
    expect([kinds, seen]).toEqual([
      ['answered', 'unanswered'],
      ['1:a', '1:b'],
    ])
  })

  it('does not repeat an aborted request', async () => {
    const { url, seen } = await startDestination(['answer'])
    const sender = new Sender({ clock: systemClock, connectionsPerHost: 1, keepBytes: 10 })
    cleanups.unshift(() => sender.close())
    const request = { url, method: 'POST', headers, body: Buffer.from('a'), timeoutMs: 10_000 }
    await sender.send(request).outcome
    const second = sender.send(request)
    second.abort()
    expect(await second.outcome).toBeUndefined()
    expect((await sender.send(request).outcome)?.kind).toBe('answered')
    expect(seen.length).toBeLessThanOrEqual(3)
  })
})
