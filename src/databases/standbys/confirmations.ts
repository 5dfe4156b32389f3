import { pause } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ReplicationPlace } from '../../fleet/index.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import { reachAnswerOf, type StandbysDeps, TOPICS } from './deps.js'
import type { Guard } from './guard.js'

/**
 * Maximum time for which answers are held back. The home stores that a standby is behind within 2 s, unless PostgreSQL is
 * away.
 */
const MAX_HELD_MS = 10_000
const RETRY_MS = 20

/** The answers of a database that wait for the same question. */
interface Batch {
  readonly confirmed: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: HomeportError) => void
}

/**
 * Holds back the answers of databases in the mode `replicated` until every standby that may take over has all writes of the
 * engine so far. While a question about a database is pending, all further answers wait for the next question.
 *
 * Only a database that may be taken over needs this: a standby that is not `following` in the store cannot take over, so no
 * answered write can get lost.
 */
export class Confirmations {
  readonly #deps: StandbysDeps
  readonly #guard: Guard
  /** Databases of this node in that mode, with their epochs; undefined until the store was read. */
  #epochs: ReadonlyMap<string, number> | undefined
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

  /** Called when the store was read. */
  read(rows: readonly PlacedStandby[]): void {
    const own = rows.filter((row) => row.home === this.#deps.node && row.mode === 'replicated')
    this.#epochs = new Map(own.map((row) => [row.database_id, row.now_epoch ?? 1]))
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

  /**
   * Whether standbys have all writes of the home's engine so far. Gives them a moment to catch up.
   * @param node only the standby at this node. Default: all that may take over. They are looked up after the place in the
   * history was read, so that a standby that may take over from now on has the writes that are answered without asking it.
   */
  async reach(databaseId: string, node?: string): Promise<boolean> {
    const { fleet, logger } = this.#deps
    try {
      const place = await (await fleet.replicationWith(databaseId)).place()
      const nodes = node === undefined ? this.#guard.nodesOf(databaseId) : [node]
      if (!nodes) return false
      const areThere = await Promise.all(nodes.map((one) => this.#isAt(place, databaseId, one)))
      return areThere.every((isThere) => isThere)
    } catch (error) {
      logger.warn('database_standby_failed', { databaseId, error })
      return false
    }
  }

  async #isAt(place: ReplicationPlace, databaseId: string, node: string): Promise<boolean> {
    const { cluster, node: source } = this.#deps
    const epoch = this.#epochs?.get(databaseId)
    const peer = cluster.peers.find(({ name }) => name === node)
    if (epoch === undefined || !peer) return false
    const [found] = await cluster.ask(TOPICS.reach, { databaseId, epoch, source, ...place }, peer.incarnation)
    return found !== undefined && reachAnswerOf(found.answer)
  }

  #mustWait(databaseId: string): boolean {
    if (!this.#epochs) return true
    return this.#epochs.has(databaseId) && this.#guard.nodesOf(databaseId)?.length !== 0
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
    const endMs = performance.now() + MAX_HELD_MS
    while (this.#state === 'running' && performance.now() < endMs) {
      if (!this.#mustWait(databaseId) || (await this.reach(databaseId))) return resolve()
      await pause(this.#deps.clock, RETRY_MS)
    }
    reject(new HomeportError('standby_silent', { seconds: MAX_HELD_MS / 1_000 }))
  }
}

function newBatch(): Batch {
  let resolve = (): void => {}
  let reject = (_: HomeportError): void => {}
  const confirmed = new Promise<void>((done, failed) => {
    resolve = done
    reject = failed
  })
  // The connection that waits for this may have ended, so that nobody handles a rejection.
  confirmed.catch(() => undefined)
  return { confirmed, resolve, reject }
}
