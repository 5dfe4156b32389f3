import { newId } from '../../base/index.js'
import type { Incarnation, Moment } from '../../cluster/index.js'
import type { Relay } from '../moves/streams.js'
import { LEASE_MS, type Lease, type ReadTotals } from './messages.js'
import { Siblings } from './siblings.js'

/** A copy of a database in the read region of this node: how it is, what its home allows, and what was read from it. */
export class Copy {
  readonly id: string
  readonly databaseId: string
  readonly region: string
  /** Its home, by name, and the life of it that was heard last. */
  readonly source: string
  life: Incarnation
  state: 'beginning' | 'connected' | 'failed' | 'over' = 'beginning'
  problem = ''
  /** When it failed, monotonic. */
  failedMs: number | undefined
  relay: Relay | undefined
  /** Loopback port of the relay. */
  port = 0
  /** Of the home's engine, as last used. */
  password: string | undefined
  /** Of the row that the copy is used with, in the life of the home that counted it. */
  revision = 0
  /** When its home was last heard, monotonic. */
  heardMs = 0
  place = { isLinked: false, replid: '', offset: 0, lookedMs: Number.NEGATIVE_INFINITY }
  /** When the other nodes of the region were last notified of this copy, monotonic. */
  announcedMs = Number.NEGATIVE_INFINITY
  /** The other nodes of the region, while a lease says which there are. */
  readonly siblings = new Siblings()
  #lease: Lease | undefined
  #reads = 0
  #bytesIn = 0
  #bytesOut = 0
  readonly #commands = new Map<string, number>()

  constructor(databaseId: string, region: string, source: string, life: Incarnation) {
    this.id = newId('cpy_', 0)
    this.databaseId = databaseId
    this.region = region
    this.source = source
    this.life = life
  }

  /** The home allows reads, or with undefined allows none any more. */
  allow(lease: Lease | undefined): void {
    this.#lease = lease
    if (lease) this.siblings.are(lease.siblings)
  }

  /** Whether the home allows reads at a moment, which may be one at which a reply arrives. */
  mayRead(now: Moment): boolean {
    if (!this.#lease || this.state !== 'connected') return false
    const { stamp } = this.#lease
    const elapsedMs = [now.monotonicMs - stamp.monotonicMs, now.wallMs - stamp.wallMs]
    return elapsedMs.every((ms) => ms >= 0 && ms < LEASE_MS)
  }

  /**
   * Takes as many reads of those that the home allows; false: it has to answer them.
   * @param seen where it is known from what the client has seen; `node`: the siblings were asked as well.
   */
  take(count: number, now: Moment, seen: 'node' | 'token'): boolean {
    if (
      !this.mayRead(now) ||
      (seen === 'node' && this.#lease?.siblings === undefined) ||
      this.#reads + count > (this.#lease?.ceiling ?? 0)
    )
      return false
    this.#reads += count
    return true
  }

  /** Counts a read that was taken. */
  count(command: string): void {
    this.#commands.set(command, (this.#commands.get(command) ?? 0) + 1)
  }

  /** Counts bytes of clients. */
  transferred(bytesIn: number, bytesOut: number): void {
    this.#bytesIn += bytesIn
    this.#bytesOut += bytesOut
  }

  get totals(): ReadTotals {
    return { reads: this.#reads, bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, commands: [...this.#commands] }
  }

  /** Nothing is read from it any more, and it follows nobody. */
  end(): void {
    this.state = 'over'
    this.#lease = undefined
    this.relay?.close()
  }
}
