import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { atCleanup } from './cleanup.js'

/** A link between a replica and its primary that delays what the primary sends. */
export interface SlowWire {
  /** The replica connects here. */
  readonly port: number
  /** Delays what the primary sends by `lagMs`. Bytes in transit arrive no later than that. */
  setLag(lagMs: number): void
}

interface Parcel {
  readonly bytes: Buffer
  readonly sentAtMs: number
}

/** Opens a link to the primary that listens on `primaryPort`. The link is closed at cleanup. */
export async function startSlowWire(primaryPort: number): Promise<SlowWire> {
  let lagMs = 0
  const lines = new Set<Line>()
  const server = createServer((replica) => {
    const primary = createConnection({ port: primaryPort, host: '127.0.0.1' })
    const line = new Line(primary, replica, () => lagMs)
    lines.add(line)
    replica.on('close', () => lines.delete(line))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(() => cut(server, lines))
  const setLag = (ms: number): void => {
    lagMs = ms
    for (const line of lines) line.deliver()
  }
  return { port: (server.address() as { port: number }).port, setLag }
}

async function cut(server: Server, lines: ReadonlySet<Line>): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  for (const line of lines) line.cut()
  await closed
}

class Line {
  readonly #primary: Socket
  readonly #replica: Socket
  readonly #lagMs: () => number
  readonly #parcels: Parcel[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(primary: Socket, replica: Socket, lagMs: () => number) {
    this.#primary = primary
    this.#replica = replica
    this.#lagMs = lagMs
    primary.on('data', (bytes: Buffer) => {
      this.#parcels.push({ bytes, sentAtMs: performance.now() })
      this.deliver()
    })
    replica.on('data', (bytes: Buffer) => primary.write(bytes))
    for (const end of [primary, replica]) {
      end.on('error', () => {})
      end.on('close', () => this.cut())
    }
  }

  /** Delivers the parcels that are due, and sets a timer for the others. */
  deliver(): void {
    clearTimeout(this.#timer)
    for (let first = this.#parcels[0]; first; first = this.#parcels[0]) {
      const leftMs = first.sentAtMs + this.#lagMs() - performance.now()
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.deliver(), leftMs)
        return
      }
      this.#parcels.shift()
      this.#replica.write(first.bytes)
    }
  }

  cut(): void {
    clearTimeout(this.#timer)
    this.#primary.destroy()
    this.#replica.destroy()
  }
}
