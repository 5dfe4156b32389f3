import type { Clock } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as usage from '../transactions/usage.js'
import * as usageRollups from '../transactions/usage-rollups.js'
import { DAY_MS, dayOf } from './cost.js'
import type { UsageLedger } from './ledger.js'

const { TIERS_MS, FIRST_TIER_MS } = usage

/** Databases that are written down in one transaction. */
const LEDGERS_PER_WRITE = 500

/** What writing works with. */
export interface WriterDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
}

/** Writes down what ledgers have collected, one transaction after the other. */
export class Writer {
  readonly #deps: WriterDeps
  readonly #ledgers: () => Iterable<UsageLedger>
  #writing: Promise<void> = Promise.resolve()
  #version = 0
  /** When the meters were last read; decides which stretch of time samples belong to. */
  collectedAt = 0

  constructor(deps: WriterDeps, ledgers: () => Iterable<UsageLedger>) {
    this.#deps = deps
    this.#ledgers = ledgers
  }

  /** Grows whenever something is taken from the ledgers to be written. */
  get version(): number {
    return this.#version
  }

  /** Waits until nothing is being written; answers the version of that moment. */
  async settled(): Promise<number> {
    await this.#writing.catch(() => undefined)
    return this.#version
  }

  /** Writes everything that has been collected. Rejects when that does not succeed; then it is still there. */
  write(): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#writeAll())
    return this.#writing
  }

  /** Begins to write; what fails is written with what comes next. */
  writeSoon(): void {
    this.write().catch((error: unknown) => this.#deps.logger.warn({ error }, 'usage is not written down yet'))
  }

  async #writeAll(): Promise<void> {
    const ledgers = [...this.#ledgers()].filter((ledger) => !ledger.pending.isEmpty)
    for (let at = 0; at < ledgers.length; at += LEDGERS_PER_WRITE)
      await this.#writeSome(ledgers.slice(at, at + LEDGERS_PER_WRITE))
  }

  async #writeSome(ledgers: readonly UsageLedger[]): Promise<void> {
    const lastMoment = (this.collectedAt || this.#deps.clock.now()) - 1
    const taken = ledgers.map((ledger) => ({ ledger, news: ledger.take() }))
    this.#version++
    try {
      const start = lastMoment - (lastMoment % FIRST_TIER_MS)
      await this.#deps.store.run(usage.add, { start, news: taken.map(({ news }) => news) })
    } catch (error) {
      // What may have been written is not written again: nothing is ever charged twice.
      const mayBeWritten = isError(error, 'store_outcome_unknown')
      if (!mayBeWritten) for (const { ledger, news } of taken) ledger.pending.giveBack(news)
      throw error
    }
  }
}

const HOUR_MS = 60 * 60 * 1000

/** How long each tier is kept, by its place: what the longest period that is read from it needs, and some more. */
const KEPT_MS = [4 * HOUR_MS, 8 * DAY_MS, 32 * DAY_MS] as const
/** How long the totals of days are kept. */
const DAYS_KEPT_MS = 400 * DAY_MS
/** Databases that one transaction puts together. */
const DATABASES_AT_ONCE = 100

/** What roll-ups work with. */
export interface RollUpsDeps {
  readonly store: Store
  readonly logger: Pick<Logger, 'warn'>
}

/** Keeps the series bounded, in small steps in the background. */
export class RollUps {
  readonly #deps: RollUpsDeps
  #working: Promise<void> = Promise.resolve()
  #doneTo = 0
  /** When the last stretch of the longest tier ends that something was written into. */
  #neededTo = 0
  #state: 'running' | 'stopped' = 'running'

  constructor(deps: RollUpsDeps) {
    this.#deps = deps
  }

  /** Catches up with what an earlier life has left. */
  begin(nowMs: number): void {
    this.look(nowMs, true)
  }

  /** Begins to work when a stretch of the second tier has ended since the last time and may be needed. */
  look(nowMs: number, hasWritten: boolean): void {
    if (hasWritten) this.#neededTo = nowMs - (nowMs % TIERS_MS[2]) + TIERS_MS[2]
    const endedTo = nowMs - (nowMs % TIERS_MS[1])
    if (endedTo <= this.#doneTo || this.#doneTo >= this.#neededTo) return
    this.#doneTo = endedTo
    this.#working = this.#working.then(() => this.#work(nowMs)).catch((error: unknown) => this.#onFailure(error))
  }

  /** Begins with no further step, and waits for the present one. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    await this.#working
  }

  async #work(nowMs: number): Promise<void> {
    for (const tier of [1, 2] as const) await this.#rollUp(tier, nowMs)
    const tiers = [nowMs - KEPT_MS[0], nowMs - KEPT_MS[1], nowMs - KEPT_MS[2]] as const
    const expiry = { tiers, days: dayOf(nowMs - DAYS_KEPT_MS) }
    while (this.#state === 'running') {
      if ((await this.#deps.store.run(usageRollups.expire, expiry)) === 'done') return
    }
  }

  async #rollUp(tier: 1 | 2, endedBefore: number): Promise<void> {
    for (let after = ''; this.#state === 'running'; ) {
      const args = { tier, endedBefore, after, limit: DATABASES_AT_ONCE }
      const outcome = await this.#deps.store.run(usageRollups.rollUp, args)
      if (outcome.kind === 'done') return
      after = outcome.after
    }
  }

  #onFailure(error: unknown): void {
    this.#doneTo = 0
    if (this.#state === 'running') this.#deps.logger.warn({ error }, 'series of usage are not rolled up yet')
  }
}
