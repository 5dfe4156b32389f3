/** Streams between the two nodes of a move, through the link between nodes. */
import { createReadStream } from 'node:fs'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { type Clock, isObject, tryParseJson } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'

/** The service of the link that accepts these streams. */
export const SERVICE = 'database-move'

/** The first message of a stream. */
export interface StreamHead {
  /** Empty in a stream of a standby. */
  readonly moveId: string
  readonly databaseId: string
  readonly epoch: number
  /** The backup whose file the stream gets; absent: the replication of the primary. */
  readonly backupId?: string
}

const MAX_HEAD_BYTES = 1_024
const HEAD_WITHIN_MS = 5_000

/** Opens a stream to the home of a database. */
export async function openStream(
  cluster: Pick<Cluster, 'tunnel'>,
  node: string,
  head: StreamHead,
  service = SERVICE,
): Promise<Duplex> {
  const stream = await cluster.tunnel(node, service, '')
  stream.on('error', () => undefined)
  stream.write(`${JSON.stringify(head)}\n`)
  return stream
}

/** Where an accepted stream leads: to the socket of an engine, or to a file. */
export type StreamTarget = { readonly socketPath: string } | { readonly file: string }

/**
 * Serves a stream of another node: reads its first message, and connects it to what `find` allows.
 * @param find answers undefined to refuse: no such move is active, or the epoch is another one.
 */
export function serveStream(stream: Duplex, clock: Clock, find: (head: StreamHead) => StreamTarget | undefined): void {
  stream.on('error', () => undefined)
  const late = clock.after(HEAD_WITHIN_MS, () => stream.destroy())
  stream.once('close', () => late.cancel())
  let read = Buffer.alloc(0)
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk])
    const end = read.indexOf(0x0a)
    if (end < 0 && read.length <= MAX_HEAD_BYTES) return
    stream.off('data', onData)
    stream.pause()
    late.cancel()
    const head = end < 0 ? undefined : headOf(read.subarray(0, end).toString('utf8'))
    const target = head && find(head)
    if (!target) return void stream.destroy()
    if (end + 1 < read.length) stream.unshift(read.subarray(end + 1))
    connect(stream, target)
  }
  stream.on('data', onData)
}

function connect(stream: Duplex, target: StreamTarget): void {
  if ('file' in target) return void pipeline(createReadStream(target.file), stream, () => undefined)
  join(stream, createConnection({ path: target.socketPath }))
}

function headOf(text: string): StreamHead | undefined {
  const value = tryParseJson(text)
  if (!isObject(value)) return undefined
  const { moveId, databaseId, epoch, backupId } = value
  if (typeof moveId !== 'string' || typeof databaseId !== 'string' || typeof epoch !== 'number') return undefined
  return { moveId, databaseId, epoch, ...(typeof backupId === 'string' ? { backupId } : {}) }
}

/** Copies both directions; the end of either ends both. */
function join(one: Duplex, other: Duplex): void {
  pipeline(one, other, () => one.destroy())
  pipeline(other, one, () => other.destroy())
}

/**
 * A loopback port whose connections lead to the primary of another node, because an engine can only follow a port. A client
 * of the port has to log in to that primary.
 */
export class Relay {
  readonly #open: () => Promise<Duplex>
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(open: () => Promise<Duplex>) {
    this.#open = open
    this.#server = createServer({ noDelay: true }, (socket) => void this.#serve(socket))
  }

  /** Resolves with the port. */
  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host: '127.0.0.1', port: 0, exclusive: true }, () =>
        resolve((this.#server.address() as AddressInfo).port),
      )
    })
  }

  /** Cuts all streams. */
  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Never rejects. */
  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => undefined)
    try {
      const stream = await this.#open()
      if (socket.destroyed) stream.destroy()
      else join(stream, socket)
    } catch {
      // The engine tries again.
      socket.destroy()
    }
  }
}
