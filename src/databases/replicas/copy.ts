import { newId } from '../../base/index.js'
import type { Incarnation, Moment } from '../../cluster/index.js'
import type { HomeRelay } from '../copies.js'
import { type CopyReport, LEASE_MS, type Lease, type ReadTotals } from './messages.js'
import { Siblings } from './siblings.js'

/**
 * Identifies the row of its database that a copy is used with: its number, and the incarnation of the home that counted it.
 */
export interface UsedRow {
  readonly incarnation: Incarnation
  readonly revision: number
}

/**
 * The states of a copy.
 *
 * ```
 *                engine runs                  another password or row
 *   beginning ────────────────▶ connected ────────────────────────────▶ connected
 *       └────────── failure ────────┴──▶ failed   begun again by a beat after a while
 *   over: from any state. Another copy replaces it, or none is wanted.
 * ```
 */
type CopyState =
  | { readonly kind: 'beginning' | 'over' }
  | { readonly kind: 'connected'; readonly row: UsedRow }
  | { readonly kind: 'failed'; readonly problem: string; readonly atMs: number }

/** Identifies a copy, and names the node that it is copied from. */
export interface CopyOrigin {
  readonly databaseId: string
  /** The read region. */
  readonly region: string
  /** Its home, by name. */
  readonly source: string
}

/**
 * A copy of a database in the read region of this node: its state, the reads that its home allows, and the reads that were
 * made.
 */
export class Copy {
  readonly id = newId('cpy_', 0)
  readonly databaseId: string
  readonly region: string
  readonly source: string
  readonly relay: HomeRelay
  #state: CopyState = { kind: 'beginning' }
  /** When its home last sent a beat, monotonic. */
  heardMs = 0
  place = { isLinked: false, replid: '', offset: 0, lookedMs: Number.NEGATIVE_INFINITY }
  /** When the other nodes of the region were last notified of this copy, monotonic. */
  announcedMs = Number.NEGATIVE_INFINITY
  /** The other nodes of the region, as the last lease names them. */
  readonly siblings = new Siblings()
  #lease: Lease | undefined
  #reads = 0
  #bytesIn = 0
  #bytesOut = 0
  readonly #commands = new Map<string, number>()

  constructor({ databaseId, region, source }: CopyOrigin, relay: HomeRelay) {
    this.databaseId = databaseId
    this.region = region
    this.source = source
    this.relay = relay
  }

  get state(): CopyState {
    return this.#state
  }

  /** Called when its engine runs and follows, with the users and limits of this row. */
  connected(row: UsedRow): void {
    if (!this.hasEnded) this.#state = { kind: 'connected', row }
  }

  /** Whether it is used with this row. */
  uses({ incarnation, revision }: UsedRow): boolean {
    const state = this.#state
    return state.kind === 'connected' && state.row.incarnation === incarnation && state.row.revision === revision
  }

  /** Whether its engine follows nobody any more. */
  get hasEnded(): boolean {
    return this.#state.kind === 'failed' || this.#state.kind === 'over'
  }

  /** Notes the lease with which the home allows reads; undefined: it allows none any more. */
  allow(lease: Lease | undefined): void {
    this.#lease = lease
    if (lease) this.siblings.are(lease.siblings)
  }

  /** Whether the home allows reads at a moment, such as the arrival of a reply. */
  mayRead(now: Moment): boolean {
    if (!this.#lease || this.#state.kind !== 'connected') return false
    const { stamp } = this.#lease
    const elapsedMs = [now.monotonicMs - stamp.monotonicMs, now.wallMs - stamp.wallMs]
    return elapsedMs.every((ms) => ms >= 0 && ms < LEASE_MS)
  }

  /**
   * Takes `count` of the reads that the home allows; false: the home has to answer them.
   * @param seen how it is known what the client has seen. `token`: by its sync token; `node`: this node knows it, and asked
   * the siblings.
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

  /** Ends the copy: it answers no more reads, and follows nobody. */
  end(): void {
    this.#state = { kind: 'over' }
    this.#lease = undefined
    this.relay.close()
  }

  /** Called when the copy cannot continue. */
  fail(problem: string): void {
    if (this.#state.kind === 'over') return
    this.#state = { kind: 'failed', problem, atMs: performance.now() }
    this.relay.close()
  }

  /** The report for its home. */
  report(): CopyReport {
    const { databaseId, id: copyId, totals } = this
    const { replid, offset, isLinked } = this.place
    const state = this.#state
    const common = { databaseId, copyId, problem: '', replid, offset, revision: 0, totals }
    if (state.kind === 'failed') return { ...common, state: 'failed', problem: state.problem }
    if (state.kind !== 'connected') return { ...common, state: 'copying' }
    return { ...common, state: isLinked ? 'following' : 'copying', revision: state.row.revision }
  }
}
