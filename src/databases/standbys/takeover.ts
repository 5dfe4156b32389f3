import { auditRow } from '../../accounts/index.js'
import { pause, unreachable } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { ReplicationPlace } from '../../fleet/index.js'
import * as databases from '../transactions/databases.js'
import * as promotions from '../transactions/promotions.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import { systemCaller } from '../usage/index.js'
import type { CopySide } from './copy-side.js'
import type { StandbysDeps } from './deps.js'

const RETRY_MS = 500
/** A copy whose engine has not answered by then lets the other standbys take over. */
const ENGINE_WITHIN_MS = 5_000
/** A copy that cannot take the place of its home is logged once in this time. */
const LOG_EVERY_MS = 60_000
/** The other standbys usually store their places within 6 s, and a node that is lost is declared dead within 7 s. */
const WAITS_LONG_MS = 15_000

/** A standby of this node whose home is dead. */
interface Attempt {
  readonly row: PlacedStandby
  /** Incarnation of the home that has died. */
  readonly incarnation: number
  /** Monotonic. */
  readonly beganMs: number
}

/**
 * The takeover of one database by this node.
 *
 * ```
 *   none ──the home is dead──▶ competing ──promoted, or another node is the home──▶ none
 *                                │  ▲  └──the engine does not answer, the store is away──▶ none, until the next look
 *    its copy cannot take over   ▼  │ the copy is whole again, or another incarnation of the home is dead
 *                              unable ──the home is back──▶ none
 * ```
 */
type TakeoverState =
  | { readonly kind: 'competing'; readonly done: Promise<void> }
  | { readonly kind: 'unable'; readonly incarnation: number }

/** Makes this node the home of databases whose home is dead, if its copy is whole and the furthest of all copies. */
export class Takeover {
  readonly #deps: StandbysDeps
  readonly #copies: CopySide
  readonly #takeovers = new Map<string, TakeoverState>()
  /** When each refusal was last logged, monotonic. */
  readonly #reportedMs = new Map<string, number>()
  #state: 'running' | 'stopped' = 'running'

  constructor(deps: StandbysDeps, copies: CopySide) {
    this.#deps = deps
    this.#copies = copies
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    await this.idle()
  }

  /** Resolves when no takeover is active. */
  async idle(): Promise<void> {
    await Promise.all([...this.#takeovers.values()].map((one) => one.kind === 'competing' && one.done))
  }

  /** Begins the takeovers that are due, without waiting for them. */
  consider(rows: readonly PlacedStandby[]): void {
    const { node } = this.#deps
    const own = rows.filter((row) => row.node === node && row.home !== node)
    const known = new Set(own.map((row) => row.database_id))
    for (const [databaseId, { kind }] of this.#takeovers) {
      if (kind === 'unable' && !known.has(databaseId)) this.#takeovers.delete(databaseId)
    }
    for (const row of own) this.#considerOne(row)
  }

  #considerOne(row: PlacedStandby): void {
    const { database_id: databaseId, home_incarnation: incarnation } = row
    const known = this.#takeovers.get(databaseId)
    if (known?.kind === 'competing') return
    if (row.home_state !== 'dead' || row.state !== 'following' || incarnation === null) {
      // A takeover that failed has left the copy sealed, and the home has come back.
      this.#takeovers.delete(databaseId)
      this.#copies.unseal(databaseId)
      return
    }
    if (known?.incarnation === incarnation && !this.#copies.isWhole(databaseId, row.now_epoch ?? 1)) return
    const done = this.#take({ row, incarnation, beganMs: performance.now() }).then((outcome) => {
      if (outcome === 'unable') this.#takeovers.set(databaseId, { kind: 'unable', incarnation })
      else this.#takeovers.delete(databaseId)
    })
    this.#takeovers.set(databaseId, { kind: 'competing', done })
  }

  /** Resolves to whether the copy cannot take over until something changes. Never rejects. */
  async #take(attempt: Attempt): Promise<'over' | 'unable'> {
    const { row } = attempt
    const { database_id: databaseId } = row
    try {
      const reported = this.#copies.seal(databaseId, row.now_epoch ?? 1)
      if (!reported) {
        await this.#stand(attempt, undefined)
        return this.#giveUp(row, 'this node was restarted, or its copy was not complete')
      }
      await this.#untilPromiseEnds(databaseId)
      this.#copies.cut(databaseId)
      return await this.#compete(attempt, reported)
    } catch (error) {
      // The next look begins again, with the copy as it is.
      this.#deps.logger.warn('database_standby_failed', { databaseId, error })
      return 'over'
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
   * Stores the place of the copy, and asks to become the home, until this standby or another one is the home, or the old
   * home is back.
   * @param reported the place of the copy that was last reported to the home.
   */
  async #compete(attempt: Attempt, reported: ReplicationPlace): Promise<'over' | 'unable'> {
    let { row } = attempt
    const { incarnation, beganMs } = attempt
    while (this.#state === 'running') {
      const place = await this.#placeOf(row)
      const isWhole = place?.replid === reported.replid && place.offset >= reported.offset
      row = await this.#stand({ row, incarnation }, isWhole ? place : undefined)
      if (!place) {
        this.#report(row, 'the engine of the copy does not answer')
        return 'over'
      }
      if (!isWhole) return this.#giveUp(row, 'the copy has lost writes that it had: its engine was restarted')
      const result = await this.#promote(row, Math.max(0, (row.home_offset ?? 0) - place.offset))
      switch (result.kind) {
        case 'promoted':
          await this.#serve(row, performance.now() - beganMs)
          return 'over'
        case 'late':
          this.#copies.unseal(row.database_id)
          return 'over'
        case 'refused':
          return this.#giveUp(row, result.why)
        case 'waits':
          if (performance.now() - beganMs > WAITS_LONG_MS) this.#report(row, result.why)
          await pause(this.#deps.clock, RETRY_MS)
          break
        default:
          return unreachable(result)
      }
    }
    return 'over'
  }

  /** Undefined when the engine does not answer. */
  async #placeOf({ database_id: databaseId }: PlacedStandby): Promise<ReplicationPlace | undefined> {
    const { fleet, clock, logger } = this.#deps
    const asked = fleet.replicationWith(databaseId).then((replication) => replication.position())
    const answered = asked.catch((error: unknown) => {
      logger.warn('database_standby_failed', { databaseId, error })
      return undefined
    })
    return Promise.race([answered, pause(clock, ENGINE_WITHIN_MS).then(() => undefined)])
  }

  /** Stores the place of the copy, unless it is stored already. @param place undefined: the copy cannot take over. */
  async #stand(
    { row, incarnation }: Pick<Attempt, 'row' | 'incarnation'>,
    place: ReplicationPlace | undefined,
  ): Promise<PlacedStandby> {
    const stands = { stand_life: incarnation, stand_replid: place?.replid ?? null, stand_offset: place?.offset ?? null }
    const isKnown = row.stand_life === incarnation && row.stand_replid === stands.stand_replid
    if (isKnown && row.stand_offset === stands.stand_offset) return row
    const { store, node } = this.#deps
    const stored = place && { replid: place.replid, offset: place.offset }
    await store.run(promotions.recordPosition, { databaseId: row.database_id, node, incarnation, place: stored })
    return { ...row, ...stands }
  }

  /** @param missing bytes of the home's history that the copy lacks, by the offset that the home stores once a second. */
  async #promote(row: PlacedStandby, missing: number): Promise<promotions.Promoted> {
    const { store, clock, node } = this.#deps
    const { database_id: databaseId, home } = row
    const from = home ?? ''
    const at = clock.now()
    const stored = await store.run(databases.find, { databaseId })
    if (!stored) return { kind: 'late' }
    const complete_until = new Date(row.complete_until ?? 0).toISOString()
    const details = { from_node: from, node, complete_until, known_missing_bytes: missing }
    const event = { action: 'Promote Database Standby', entity: databaseId, details } as const
    const audit = auditRow(systemCaller(stored.account_id), event, at)
    const epoch = row.now_epoch ?? 1
    return this.#untilKnown({ databaseId, from, to: node, epoch, at, audit })
  }

  /**
   * When the answer to the commit is lost, no node serves the database, and a read may run before the commit, because
   * PostgreSQL may still be executing it. So the promotion is repeated, behind the locks of the first one, until it gets an
   * answer.
   */
  async #untilKnown(promotion: promotions.Promotion): Promise<promotions.Promoted> {
    const { store, clock } = this.#deps
    let isLost = false
    while (this.#state === 'running') {
      try {
        return await store.run(promotions.promote, promotion)
      } catch (error) {
        isLost ||= isError(error, 'store_outcome_unknown')
        if (!isLost) throw error
        await pause(clock, RETRY_MS)
      }
    }
    return { kind: 'refused', why: 'this node was stopped' }
  }

  async #serve(row: PlacedStandby, durationMs: number): Promise<void> {
    const { logger, take, announce, node, meter } = this.#deps
    const { database_id: databaseId } = row
    await this.#copies.releaseFiles(databaseId)
    const serving = take(databaseId)
    if (meter) meter.promotions++
    const until = new Date(row.complete_until ?? 0).toISOString()
    const detail = `every write that ${row.home} had acknowledged by ${until} is here`
    logger.warn('database_promoted', { databaseId, node, detail, durationMs })
    await Promise.all([serving, announce(databaseId)])
  }

  #giveUp(row: PlacedStandby, reason: string): 'unable' {
    this.#copies.unseal(row.database_id)
    this.#report(row, reason)
    return 'unable'
  }

  /** Logs why this node does not take over, at most once in `LOG_EVERY_MS`. */
  #report({ database_id: databaseId, home }: PlacedStandby, reason: string): void {
    const sinceMs = performance.now() - (this.#reportedMs.get(databaseId) ?? Number.NEGATIVE_INFINITY)
    if (sinceMs < LOG_EVERY_MS) return
    this.#reportedMs.set(databaseId, performance.now())
    this.#deps.logger.error('database_not_promoted', { databaseId, node: home ?? '', reason })
  }
}
