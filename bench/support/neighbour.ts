import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import type { Target } from './large-load.js'
import { stormRate } from './storm.js'

/** What a neighbour does: it moves values of 100 MB, scans all keys, or repeatedly connects and is refused. */
export type NeighbourKind = 'values of 100 MB' | 'scans' | 'a storm of connections'

/** A neighbour and the server that it uses. */
export interface Neighbour extends Target {
  readonly kind: NeighbourKind
}

const LARGE_BYTES = 100 * 2 ** 20
const STORM = { attempts: 400, atOnce: 50 }
const SCANNED_AT_A_TIME = 1_000
const CR = 13

/** Disturbs the server until `isOver`. @returns the number of repetitions. */
export async function disturb({ kind, ...target }: Neighbour, isOver: () => boolean): Promise<number> {
  let times = 0
  if (kind === 'a storm of connections') {
    for (; !isOver(); times += STORM.attempts) await stormRate({ ...STORM, port: target.port })
    return times
  }
  const socket = await login(target)
  for (; !isOver(); times++) await (kind === 'scans' ? scan(socket) : moveLarge(socket))
  socket.destroy()
  return times
}

/** Connects and logs in. */
export async function login({ port, password }: Target): Promise<Socket> {
  const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
  socket.write(`AUTH ${password}\r\n`)
  await once(socket, 'data')
  return socket
}

/** Creates keys for scans. */
export async function fill(target: Target, keys: number): Promise<void> {
  const socket = await login(target)
  const lines = Array.from({ length: keys }, (_, at) => `SET neighbour:${at} 1\r\n`)
  socket.write(lines.join(''))
  await received(socket, keys * '+OK\r\n'.length)
  socket.destroy()
}

/** Sets and reads one large value. */
async function moveLarge(socket: Socket): Promise<void> {
  const head = `$${LARGE_BYTES}\r\n`
  socket.write(`*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n${head}`)
  socket.write(Buffer.alloc(LARGE_BYTES, 'v'))
  socket.write('\r\n')
  await received(socket, '+OK\r\n'.length)
  socket.write('GET large\r\n')
  await received(socket, head.length + LARGE_BYTES + 2)
}

/** Reads as many keys as a SCAN returns. */
async function scan(socket: Socket): Promise<void> {
  let cursor = '0'
  do {
    socket.write(`SCAN ${cursor} COUNT ${SCANNED_AT_A_TIME}\r\n`)
    cursor = await scanReply(socket)
  } while (cursor !== '0')
}

/** The cursor of a reply; its lines are an array of the cursor and an array of keys. */
async function scanReply(socket: Socket): Promise<string> {
  let text = ''
  for (;;) {
    const [chunk] = await once(socket, 'data')
    text += chunk.toString('latin1')
    const head = /^\*2\r\n\$\d+\r\n(\d+)\r\n\*(\d+)\r\n/.exec(text)
    if (!head) continue
    const lines = 2 * Number(head[2])
    let ends = 0
    for (let at = head[0].length; at < text.length; at++) if (text.charCodeAt(at) === CR) ends++
    if (ends >= lines && text.endsWith('\n')) return head[1] ?? '0'
  }
}

function received(socket: Socket, bytes: number): Promise<void> {
  let left = bytes
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      left -= chunk.length
      if (chunk[0] === '-'.charCodeAt(0)) reject(new Error(chunk.toString('latin1', 0, 200)))
      if (left > 0) return
      socket.off('data', onData)
      resolve()
    }
    socket.on('data', onData)
  })
}

/** Throughput and latency of clients of small commands. */
export interface Service {
  readonly perSecond: number
  readonly latenciesMs: readonly number[]
}

/** Sends GET with this many clients for this time; each client waits for its reply before it sends again. */
export async function serve(target: Target, clients: number, durationMs: number): Promise<Service> {
  const latenciesMs: number[] = []
  const until = performance.now() + durationMs
  const one = async (): Promise<void> => {
    const socket = await login(target)
    await new Promise<void>((resolve) => {
      let sentAt = 0
      const next = (): void => {
        sentAt = performance.now()
        if (sentAt >= until) resolve()
        else socket.write('GET neighbour:1\r\n')
      }
      socket.on('data', () => {
        latenciesMs.push(performance.now() - sentAt)
        next()
      })
      next()
    })
    socket.destroy()
  }
  await Promise.all(Array.from({ length: clients }, one))
  return { perSecond: (1000 * latenciesMs.length) / durationMs, latenciesMs }
}
