import { pause } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import { isThereOf, type StandbysDeps, TOPICS } from './deps.js'
import type { Guard } from './guard.js'

/** Answers are held back for at most this time. The home stores that a standby is behind within 2 s, unless PostgreSQL is away. */
const MOST_HELD_MS = 10_000
const RETRY_MS = 20

/** The answers of a database that wait for the same question. */
interface Batch {
  readonly confirmed: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: HomeportError) => void
}

/**
 * Holds the answers of databases in the mode `replicated` back until the standby has what the engine has done. While one
 * question about a database is on its way, all further answers wait for the next one.
 *
 * Only a database that may be taken over needs this: one whose standby is not `following` in the store has no other copy
 * that could be served without the answered writes.
 */
export class Confirmations {
  readonly #deps: StandbysDeps
  readonly #guard: Guard
  /** Databases of this node in that mode; undefined until the store was read. */
  #rows: ReadonlyMap<string, PlacedStandby> | undefined
  readonly #next = new Map<string, Batch>()
  readonly #asking = new Set<string>()
  #state: 'running' | 'stopped' = 'running'

  constructor(deps: StandbysDeps, guard: Guard) {
    this.#deps = deps
    this.#guard = guard
  }

  stop(): void {
    this.#state = 'stopped'
  }

  /** The store was read. */
  read(rows: readonly PlacedStandby[]): void {
    const own = rows.filter((row) => row.home === this.#deps.node && row.mode === 'replicated')
    this.#rows = new Map(own.map((row) => [row.database_id, row]))
  }

  /** See `HomeControl`. */
  confirm(databaseId: string): Promise<void> | undefined {
    if (!this.#mustWait(databaseId)) return undefined
    const waiting = this.#next.get(databaseId)
    if (waiting) return waiting.confirmed
    const batch = newBatch()
    this.#next.set(databaseId, batch)
    if (!this.#asking.has(databaseId)) void this.#ask(databaseId)
    return batch.confirmed
  }

  /** Whether the standby has everything that the engine of the home has done until now. Waits a moment for it. */
  async reach(databaseId: string): Promise<boolean> {
    const { cluster, fleet, node: source, logger } = this.#deps
    const row = this.#rows?.get(databaseId)
    const peer = cluster.peers.find(({ name }) => name === row?.node)
    if (!row || !peer) return false
    try {
      const place = await (await fleet.replicationWith(databaseId)).place()
      const request = { databaseId, epoch: row.now_epoch ?? 1, source, ...place }
      const [found] = await cluster.ask(TOPICS.reach, request, peer.incarnation)
      return found !== undefined && isThereOf(found.answer)
    } catch (error) {
      logger.warn('database_standby_failed', { databaseId, error })
      return false
    }
  }

  #mustWait(databaseId: string): boolean {
    if (!this.#rows) return true
    return this.#rows.has(databaseId) && this.#guard.isGuarded(databaseId)
  }

  /** Never rejects. */
  async #ask(databaseId: string): Promise<void> {
    this.#asking.add(databaseId)
    for (let batch = this.#next.get(databaseId); batch; batch = this.#next.get(databaseId)) {
      this.#next.delete(databaseId)
      await this.#settle(databaseId, batch)
    }
    this.#asking.delete(databaseId)
  }

  async #settle(databaseId: string, { resolve, reject }: Batch): Promise<void> {
    const endMs = performance.now() + MOST_HELD_MS
    while (this.#state === 'running' && performance.now() < endMs) {
      if (!this.#mustWait(databaseId) || (await this.reach(databaseId))) return resolve()
      await pause(this.#deps.clock, RETRY_MS)
    }
    reject(new HomeportError('standby_silent', { seconds: MOST_HELD_MS / 1_000 }))
  }
}

function newBatch(): Batch {
  let resolve = (): void => {}
  let reject = (_: HomeportError): void => {}
  const confirmed = new Promise<void>((done, failed) => {
    resolve = done
    reject = failed
  })
  // The connection that asked may have ended meanwhile.
  confirmed.catch(() => undefined)
  return { confirmed, resolve, reject }
}
