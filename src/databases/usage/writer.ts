import { AgeTrust, type Clock } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as usage from '../transactions/usage.js'
import * as usageRollups from '../transactions/usage-rollups.js'
import { DAY_MS, dayOf } from './cost.js'
import type { UsageLedger } from './ledger.js'

const { TIERS_MS, FIRST_TIER_MS } = usage

/** Databases stored in one transaction. */
const LEDGERS_PER_WRITE = 500

/** What `Writer` is built from. */
export interface WriterDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
}

/** Stores the usage that ledgers have collected, one transaction after the other. */
export class Writer {
  readonly #deps: WriterDeps
  readonly #ledgers: () => Iterable<UsageLedger>
  #writing: Promise<void> = Promise.resolve()
  #version = 0
  /** When the meters were last read; decides to which time bucket samples belong. */
  collectedAt = 0

  constructor(deps: WriterDeps, ledgers: () => Iterable<UsageLedger>) {
    this.#deps = deps
    this.#ledgers = ledgers
  }

  /** Grows whenever usage is taken from the ledgers to be stored. */
  get version(): number {
    return this.#version
  }

  /** Waits until no write is active; resolves to the version at that moment. */
  async settled(): Promise<number> {
    await this.#writing.catch(() => undefined)
    return this.#version
  }

  /** Stores all collected usage. When it rejects, the usage is back in the ledgers. */
  write(): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#writeAll())
    return this.#writing
  }

  /** Starts a write; after a failure the next write stores the same usage. */
  writeSoon(): void {
    this.write().catch((error: unknown) => this.#deps.logger.warn('usage_not_stored', { error }))
  }

  async #writeAll(): Promise<void> {
    const ledgers = [...this.#ledgers()].filter((ledger) => !ledger.pending.isEmpty)
    for (let at = 0; at < ledgers.length; at += LEDGERS_PER_WRITE)
      await this.#writeSome(ledgers.slice(at, at + LEDGERS_PER_WRITE))
  }

  async #writeSome(ledgers: readonly UsageLedger[]): Promise<void> {
    const lastMoment = (this.collectedAt || this.#deps.clock.now()) - 1
    const taken = ledgers.map((ledger) => ({ ledger, update: ledger.take() }))
    this.#version++
    try {
      const start = lastMoment - (lastMoment % FIRST_TIER_MS)
      await this.#deps.store.run(usage.add, { start, updates: taken.map(({ update }) => update) })
    } catch (error) {
      // Usage that may have been stored is dropped: charging too little is better than charging twice.
      const mayBeWritten = isError(error, 'store_outcome_unknown')
      if (!mayBeWritten) for (const { ledger, update } of taken) ledger.pending.putBack(update)
      throw error
    }
  }
}

const HOUR_MS = 60 * 60 * 1000

/** Retention of each tier: a little more than the longest period that is read from it. */
const RETENTION_MS = [4 * HOUR_MS, 8 * DAY_MS, 32 * DAY_MS] as const
/** Retention of the totals by day. */
const DAYS_RETENTION_MS = 400 * DAY_MS
/** Databases that one transaction rolls up. */
const DATABASES_PER_BATCH = 100

/** What `RollUps` is built from. */
export interface RollUpsDeps {
  readonly store: Store
  readonly logger: Pick<Logger, 'warn'>
}

/** Merges the series into longer tiers and deletes samples past their retention, in small batches in the background. */
export class RollUps {
  readonly #deps: RollUpsDeps
  #working: Promise<void> = Promise.resolve()
  #doneTo = 0
  /** End of the last bucket of the longest tier that has samples. */
  #neededTo = 0
  #state: 'running' | 'stopped' = 'running'
  readonly #trust = new AgeTrust()

  constructor(deps: RollUpsDeps) {
    this.#deps = deps
  }

  /** Catches up with roll-ups that are left from before the start. */
  begin(nowMs: number): void {
    this.check(nowMs, true)
  }

  /** Starts a roll-up when a bucket of the second tier has ended since the last one and may have samples. */
  check(nowMs: number, hasWritten: boolean): void {
    if (hasWritten) this.#neededTo = nowMs - (nowMs % TIERS_MS[2]) + TIERS_MS[2]
    const endedTo = nowMs - (nowMs % TIERS_MS[1])
    // The clock was ahead at the last roll-up.
    if (this.#doneTo > nowMs) this.#doneTo = 0
    if (endedTo <= this.#doneTo || this.#doneTo >= this.#neededTo) return
    this.#doneTo = endedTo
    this.#working = this.#working.then(() => this.#work(nowMs)).catch((error: unknown) => this.#onFailure(error))
  }

  /**
   * Called when the clock was set. After a large jump ahead, which may be a mistake, nothing is deleted for its age for a
   * while.
   */
  jumped(byMs: number, nowMs: number): void {
    if (this.#trust.jumped(byMs, nowMs)) this.#deps.logger.warn('usage_retention_waits', { byMs })
  }

  /** Starts no further batch, and waits for the active one. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    await this.#working
  }

  async #work(nowMs: number): Promise<void> {
    for (const tier of [1, 2] as const) await this.#rollUp(tier, nowMs)
    if (!this.#trust.at(nowMs)) return
    const tiers = [nowMs - RETENTION_MS[0], nowMs - RETENTION_MS[1], nowMs - RETENTION_MS[2]] as const
    const expiry = { tiers, days: dayOf(nowMs - DAYS_RETENTION_MS) }
    while (this.#state === 'running') {
      if ((await this.#deps.store.run(usageRollups.expire, expiry)) === 'done') return
    }
  }

  async #rollUp(tier: 1 | 2, endedBefore: number): Promise<void> {
    for (let after = ''; this.#state === 'running'; ) {
      const args = { tier, endedBefore, after, limit: DATABASES_PER_BATCH }
      const outcome = await this.#deps.store.run(usageRollups.rollUp, args)
      if (outcome.kind === 'done') return
      after = outcome.after
    }
  }

  #onFailure(error: unknown): void {
    this.#doneTo = 0
    if (this.#state === 'running') this.#deps.logger.warn('usage_not_rolled_up', { error })
  }
}
