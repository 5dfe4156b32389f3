import { errors } from 'undici'
import type { Clock, TargetGate, Timer } from '../../base/index.js'
import type { OutgoingRequest, RequestController, ResponseHandler } from './outgoing-request.js'
import { PlainConnection } from './plain-connection.js'
import { isPlainRequest } from './plain-request.js'
import { PlainResponseHeads } from './plain-response.js'
import { Wires } from './wire.js'

const SWEEP_MS = 1_000
/**
 * If the last sweep is longer ago than this, the process was paused. Destinations may have closed connections meanwhile, or
 * announced it with bytes that must not be read as a response. So all waiting connections are closed.
 */
const PAUSED_MS = 2_500
/** Number of sweeps for which requests to an odd destination go to undici. */
const ODD_SWEEPS = 600
/** Most odd destinations that are remembered. Beyond that, the oldest is forgotten. */
const MAX_ODD = 10_000

/** What a client is built from. */
export interface PlainClientDeps {
  readonly clock: Clock
  /** Decides which addresses may be contacted. */
  readonly gate: TargetGate
  /** With this many connections to a host, a request uses a connection that has not rested, instead of a new one. */
  readonly connectionsPerHost: number
}

/**
 * Sends plain requests over connections of its own, which cost less than undici's
 * (`docs/decisions/plain-deliveries.md`). Every request gets a connection at once; the
 * dispatcher limits the number of requests.
 */
export class PlainClient {
  readonly #clock: Clock
  readonly #wires: Wires
  readonly #connectionsPerHost: number
  readonly #origins = new Map<string, PlainOrigin>()
  /**
   * Destinations whose responses are not plain, each with the number of the sweep
   * at which it is tried again, in that order.
   */
  readonly #odd = new Map<string, number>()
  #sweeps = 0
  #sweptAt = 0
  #timer: Timer | undefined
  #isClosed = false

  constructor({ clock, gate, connectionsPerHost }: PlainClientDeps) {
    this.#clock = clock
    this.#wires = new Wires(gate)
    this.#connectionsPerHost = connectionsPerHost
  }

  /** Whether this client can send a request. Requests that are not plain go to undici. */
  takes(request: OutgoingRequest): boolean {
    return !this.#isClosed && !this.#odd.has(request.origin) && isPlainRequest(request)
  }

  /**
   * Sends a request for which `takes` is true.
   * @returns if the request has to wait for a connection, a controller that can abort it before it begins
   */
  send(request: OutgoingRequest, handler: ResponseHandler): RequestController | undefined {
    const origin = this.#origins.get(request.origin) ?? this.#newOrigin(request.origin)
    this.#timer ??= this.#nextSweep()
    this.#noticePause()
    return origin.send(request, handler)
  }

  /** Ends all connections without a request. */
  endWaiting(): void {
    for (const origin of this.#origins.values()) origin.endWaiting()
  }

  /** Ends all connections. Requests in flight fail. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    for (const origin of this.#origins.values()) origin.close()
  }

  #newOrigin(url: string): PlainOrigin {
    const [wires, most] = [this.#wires, this.#connectionsPerHost]
    const origin = new PlainOrigin(new URL(url), { wires, most, onOdd: () => this.#setOdd(url) })
    this.#origins.set(url, origin)
    return origin
  }

  #setOdd(url: string): void {
    this.#odd.delete(url)
    this.#odd.set(url, this.#sweeps + ODD_SWEEPS)
    if (this.#odd.size > MAX_ODD) for (const [oldest] of this.#odd) return void this.#odd.delete(oldest)
  }

  #nextSweep(): Timer {
    this.#sweptAt = this.#clock.now()
    return this.#clock.after(SWEEP_MS, () => {
      this.#sweep()
      this.#timer = this.#origins.size + this.#odd.size > 0 && !this.#isClosed ? this.#nextSweep() : undefined
    })
  }

  #noticePause(): void {
    const now = this.#clock.now()
    if (now - this.#sweptAt < PAUSED_MS) return
    this.#sweptAt = now
    this.endWaiting()
  }

  #sweep(): void {
    this.#noticePause()
    this.#sweeps++
    for (const [url, origin] of this.#origins) {
      origin.sweep()
      if (origin.isEmpty) this.#origins.delete(url)
    }
    for (const [url, until] of this.#odd) {
      if (until > this.#sweeps) return
      this.#odd.delete(url)
    }
  }
}

/**
 * The connections to one origin. After a response, a connection rests until the event loop has polled
 * for bytes once, because the destination may have closed the connection, or sent unrequested bytes
 * that must not be read as the next response.
 */
class PlainOrigin {
  readonly #url: URL
  readonly #wires: Wires
  readonly #most: number
  readonly #onOdd: () => void
  readonly #heads = new PlainResponseHeads()
  readonly #connections = new Set<PlainConnection>()
  /** Connections that have rested; some may have ended since. The last one is used next, so that unused ones expire. */
  #free: PlainConnection[] = []
  /** Connections that rest, in the order of their responses. */
  #resting: PlainConnection[] = []

  constructor(url: URL, { wires, most, onOdd }: { wires: Wires; most: number; onOdd: () => void }) {
    this.#url = url
    this.#wires = wires
    this.#most = most
    this.#onOdd = onOdd
  }

  /** Whether it has no connection. */
  get isEmpty(): boolean {
    return this.#connections.size === 0
  }

  send(request: OutgoingRequest, handler: ResponseHandler): RequestController | undefined {
    const free = this.#takeFree()
    if (free) {
      free.send(request, handler)
      return undefined
    }
    const connection = this.#connect(request, handler)
    this.#connections.add(connection)
    return connection.opening
  }

  #takeFree(): PlainConnection | undefined {
    const rested = firstFree(() => this.#free.pop())
    return rested || this.#connections.size < this.#most ? rested : firstFree(() => this.#resting.shift())
  }

  #connect(request: OutgoingRequest, handler: ResponseHandler): PlainConnection {
    return new PlainConnection(request, handler, {
      host: this.#url.host,
      heads: this.#heads,
      open: (events) => this.#wires.open(this.#url, events),
      onFree: (connection) => this.#rest(connection),
      onOdd: this.#onOdd,
      onClosed: (connection) => void this.#connections.delete(connection),
    })
  }

  #rest(connection: PlainConnection): void {
    // Between two rounds of immediates, the event loop polls for bytes once.
    if (this.#resting.push(connection) === 1) setImmediate(() => setImmediate(() => this.#rested()))
  }

  #rested(): void {
    this.#free.push(...this.#resting.splice(0))
  }

  sweep(): void {
    for (const connection of this.#connections) connection.sweep()
    this.#free = this.#free.filter((connection) => connection.isFree)
  }

  endWaiting(): void {
    for (const connection of this.#connections) connection.endWaiting()
  }

  close(): void {
    for (const connection of this.#connections) connection.destroy(new errors.ClientDestroyedError())
  }
}

/** Takes connections from a list until one is free. The others have ended. */
function firstFree(take: () => PlainConnection | undefined): PlainConnection | undefined {
  for (;;) {
    const taken = take()
    if (!taken || taken.isFree) return taken
  }
}
