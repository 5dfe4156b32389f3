import { auditRow } from '../../accounts/index.js'
import { pause } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import * as moves from '../transactions/moves.js'
import * as promotions from '../transactions/promotions.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import { systemCaller } from '../usage/index.js'
import type { CopySide } from './copy-side.js'
import type { StandbysDeps } from './deps.js'

const RETRY_MS = 500
/** A copy that cannot take the place of its home is logged once in this time. */
const TELL_EVERY_MS = 60_000

/** Makes this node the home of databases whose home is dead and of which it has a whole copy. */
export class Takeover {
  readonly #deps: StandbysDeps
  readonly #copies: CopySide
  readonly #running = new Map<string, Promise<void>>()
  /** When each refusal was last logged, monotonic. */
  readonly #reportedMs = new Map<string, number>()
  #state: 'running' | 'stopped' = 'running'

  constructor(deps: StandbysDeps, copies: CopySide) {
    this.#deps = deps
    this.#copies = copies
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    await Promise.allSettled(this.#running.values())
  }

  /** Takes over what is to be taken over, without waiting for it. */
  consider(rows: readonly PlacedStandby[]): void {
    const { node } = this.#deps
    for (const row of rows) {
      const isLost = row.node === node && row.home !== node && row.home_life === 'dead' && row.state === 'following'
      if (!isLost || this.#running.has(row.database_id)) continue
      const done = this.#take(row).finally(() => this.#running.delete(row.database_id))
      this.#running.set(row.database_id, done)
    }
  }

  /** Never rejects. */
  async #take(row: PlacedStandby): Promise<void> {
    const { database_id: databaseId } = row
    const { logger } = this.#deps
    const beganMs = performance.now()
    const reported = this.#copies.seal(databaseId, row.now_epoch ?? 1)
    if (!reported) return this.#refuse(row, 'this node was restarted, or its copy was not whole')
    try {
      await this.#untilPromiseEnds(databaseId)
      if (this.#state === 'stopped') return
      this.#copies.cut(databaseId)
      const { replid, offset } = await (await this.#deps.fleet.replicationWith(databaseId)).position()
      const isWhole = replid === reported.replid && offset >= reported.offset
      const refusal = isWhole
        ? await this.#promote(row, Math.max(0, (row.home_offset ?? 0) - offset))
        : 'the copy has lost writes that it had: its engine was restarted'
      if (refusal !== undefined) {
        this.#copies.unseal(databaseId)
        return this.#refuse(row, refusal)
      }
      await this.#serve(row, performance.now() - beganMs)
    } catch (error) {
      // The next look begins again, with the copy as it is.
      logger.warn('database_standby_failed', { databaseId, error })
    }
  }

  async #untilPromiseEnds(databaseId: string): Promise<void> {
    for (;;) {
      const leftMs = this.#copies.promisedFor(databaseId)
      if (leftMs === 0 || this.#state === 'stopped') return
      await pause(this.#deps.clock, Math.min(leftMs, RETRY_MS))
    }
  }

  /**
   * Answers why not. When the answer to the commit is lost, the row tells.
   * @param missing bytes of the home's history that the copy lacks, of those that the home has stored once a second.
   */
  async #promote(row: PlacedStandby, missing: number): Promise<string | undefined> {
    const { store, clock, node } = this.#deps
    const { database_id: databaseId, home } = row
    const from = home ?? ''
    const at = clock.now()
    const stored = await store.run(moves.database, { databaseId })
    if (!stored) return 'the database was deleted'
    const complete_until = new Date(row.complete_until ?? 0).toISOString()
    const details = { from_node: from, node, complete_until, known_missing_bytes: missing }
    const event = { action: 'Promote Database Standby', entity: databaseId, details } as const
    const audit = auditRow(systemCaller(stored.account_id), event, at)
    try {
      const epoch = row.now_epoch ?? 1
      const result = await store.run(promotions.promote, { databaseId, from, to: node, epoch, at, audit })
      return result.kind === 'refused' ? result.why : undefined
    } catch (error) {
      if (!isError(error, 'store_outcome_unknown')) throw error
      return this.#untilKnown(databaseId)
    }
  }

  /** The commit may have been made: without an answer nobody serves the database. */
  async #untilKnown(databaseId: string): Promise<string | undefined> {
    const { store, node, clock } = this.#deps
    while (this.#state === 'running') {
      try {
        return (await store.run(moves.database, { databaseId }))?.home === node ? undefined : 'the commit was not made'
      } catch {
        await pause(clock, RETRY_MS)
      }
    }
    return 'this node was stopped'
  }

  async #serve(row: PlacedStandby, durationMs: number): Promise<void> {
    const { logger, take, announce, node, meter } = this.#deps
    const { database_id: databaseId } = row
    await this.#copies.letGo(databaseId)
    const serving = take(databaseId)
    if (meter) meter.promotions++
    const until = new Date(row.complete_until ?? 0).toISOString()
    const detail = `every write that ${row.home} had answered by ${until} is here`
    logger.warn('database_promoted', { databaseId, node, detail, durationMs })
    await Promise.all([serving, announce(databaseId)])
  }

  #refuse({ database_id: databaseId, home }: PlacedStandby, reason: string): void {
    const sinceMs = performance.now() - (this.#reportedMs.get(databaseId) ?? Number.NEGATIVE_INFINITY)
    if (sinceMs < TELL_EVERY_MS) return
    this.#reportedMs.set(databaseId, performance.now())
    this.#deps.logger.error('database_not_promoted', { databaseId, node: home ?? '', reason })
  }
}
