import type { Clock, Service, Timer } from '../../base/index.js'
import type { PlanName, PlanTable } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineSample } from '../../fleet/index.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import type { ServingDirectory } from '../directory.js'
import type { DatabaseRow } from '../life.js'
import * as usage from '../transactions/usage.js'
import { AutoUpgrade } from './auto-upgrade.js'
import { DAY_MS, dayOf, monthStartOf } from './cost.js'
import { UsageLedger } from './ledger.js'
import { Suspension, type SuspensionDeps } from './suspension.js'
import { RollUps, Writer } from './writer.js'

/** What the usage of databases is made of. */
export interface UsageDeps extends Pick<SuspensionDeps, 'inTurn' | 'publish'> {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly plans: PlanTable
  /** How often what was counted is written down. */
  readonly flushMs: number
  readonly directory: Pick<ServingDirectory, 'follow'>
  /** Looks at the engines of a database that is awake; see `Fleet.sample`. */
  readonly sample: (databaseId: string) => Promise<EngineSample | undefined>
  readonly changePlan: (caller: Caller, databaseId: string, plan: PlanName) => Promise<void>
}

/** Engines that are looked at side by side. */
const LOOKS_AT_A_TIME = 8
/** An engine that is too busy to tell about itself in this time is looked at the next time. */
const LONGEST_LOOK_MS = 1_000

/** Keeps what databases use; see `index.ts`. To be started after the databases and before the gateway. */
export class Usage implements Service {
  readonly name = 'usage'
  readonly #deps: UsageDeps
  readonly #ledgers = new Map<string, UsageLedger>()
  readonly #writer: Writer
  readonly #suspension: Suspension
  readonly #upgrades: AutoUpgrade
  readonly #rollUps: RollUps
  #unfollow: (() => void) | undefined
  #timer: Timer | undefined
  #turning: Promise<void> = Promise.resolve()
  #state: 'new' | 'running' | 'stopped' = 'new'
  #startedAtMs = 0

  constructor(deps: UsageDeps) {
    this.#deps = deps
    this.#writer = new Writer(deps, () => this.#ledgers.values())
    this.#suspension = new Suspension({ ...deps, write: () => this.#writer.write() })
    this.#upgrades = new AutoUpgrade(deps)
    this.#rollUps = new RollUps(deps)
  }

  async start(): Promise<void> {
    const { store, clock, directory } = this.#deps
    const now = clock.now()
    this.#startedAtMs = now
    const { standings, month } = await store.run(usage.load, { monthStart: monthStartOf(now) })
    const standingOf = new Map(standings.map((row) => [row.database_id, row]))
    const monthOf = new Map(month.map((row) => [row.database_id, row]))
    const put = (row: DatabaseRow): void => {
      const { database_id: id } = row
      this.#put(row, { standing: standingOf.get(id), month: monthOf.get(id) })
    }
    this.#unfollow = directory.follow({ put, remove: (databaseId) => void this.#ledgers.delete(databaseId) })
    this.#state = 'running'
    for (const ledger of this.#ledgers.values()) void this.#suspension.begin(ledger)
    this.#rollUps.begin(now)
    this.#plan()
  }

  /** Writes down what has been counted to the last command. */
  async stop(): Promise<void> {
    if (this.#state !== 'running') return
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#turning
    await Promise.all([this.#suspension.stop(), this.#upgrades.stop(), this.#rollUps.stop()])
    await this.#collect()
    await this.#writer.write()
    this.#unfollow?.()
  }

  /**
   * What the data plane counts in and learns the budget from: the same object each time. The database must be served.
   */
  usageOf(databaseId: string): UsageLedger {
    const ledger = this.#ledgers.get(databaseId)
    if (!ledger) throw new Error(`database ${databaseId} is not served`)
    return ledger
  }

  /** The present, Unix milliseconds. */
  get nowMs(): number {
    return this.#deps.clock.now()
  }

  /** When this life began, Unix milliseconds. */
  get startedAtMs(): number {
    return this.#startedAtMs
  }

  /** Where the ledgers are kept. */
  get store(): Store {
    return this.#deps.store
  }

  /** The ledgers of all databases. */
  get ledgers(): readonly UsageLedger[] {
    return [...this.#ledgers.values()]
  }

  /** Resolves when what the last flush interval began is done, and the next one is under way. */
  get turned(): Promise<void> {
    return this.#turning
  }

  /** Resolves when the state of a database fits its budget, after one of them has changed. */
  async settle(databaseId: string): Promise<void> {
    const ledger = this.#ledgers.get(databaseId)
    if (ledger && this.#state === 'running') await this.#suspension.settle(ledger)
  }

  /**
   * Reads a report from the store and completes it by what is not written down yet, to the present command.
   * @param complete gets the report and the ledger of the same moment; the ledger is missing for one that is not served.
   */
  async report<Report, Complete>(
    databaseId: string,
    read: () => Promise<Report>,
    complete: (report: Report, ledger: UsageLedger | undefined) => Complete,
  ): Promise<Complete> {
    for (;;) {
      const version = await this.#writer.settled()
      const report = await read()
      if (version !== this.#writer.version) continue
      const ledger = this.#ledgers.get(databaseId)
      ledger?.collect(this.nowMs)
      return complete(report, ledger)
    }
  }

  #put(row: DatabaseRow, known: Pick<ConstructorParameters<typeof UsageLedger>[0], 'standing' | 'month'>): void {
    const { plans, clock } = this.#deps
    const present = this.#ledgers.get(row.database_id)
    if (present) {
      present.update(row, clock.now())
      // A plan that has changed: what it cost until now stands before the new price holds.
      if (!present.pending.isEmpty) this.#writer.writeSoon()
      return
    }
    const onBudgetSpent = (): void => void this.#suspension.begin(this.usageOf(row.database_id))
    this.#ledgers.set(row.database_id, new UsageLedger({ row, plans, nowMs: clock.now(), onBudgetSpent, ...known }))
  }

  #plan(): void {
    if (this.#state !== 'running') return
    const { clock, flushMs } = this.#deps
    const now = clock.now()
    const next = Math.min(now - (now % flushMs) + flushMs, dayOf(now) + DAY_MS)
    this.#timer = clock.after(next - now, () => {
      this.#turning = this.#turn()
        .catch((error: unknown) => this.#deps.logger.warn({ error }, 'usage is not written down yet'))
        .finally(() => this.#plan())
    })
  }

  async #turn(): Promise<void> {
    const now = this.#deps.clock.now()
    const collected = await this.#collect()
    for (const ledger of this.#ledgers.values()) ledger.updateRequestLimit(this.#deps.clock.now())
    await this.#writer.write()
    for (const ledger of this.#ledgers.values()) void this.#suspension.begin(ledger)
    for (const ledger of collected) this.#upgrades.consider(ledger)
    this.#rollUps.look(now, collected.length > 0)
  }

  /** Collects what has been counted at this very moment, then looks at the engines that had something to do. */
  async #collect(): Promise<readonly UsageLedger[]> {
    const now = this.#deps.clock.now()
    this.#writer.collectedAt = now
    for (const ledger of this.#ledgers.values()) ledger.collect(now)
    const ledgers = [...this.#ledgers.values()].filter((ledger) => ledger.needsSample)
    const waiting = ledgers.values()
    const lookers = Array.from({ length: LOOKS_AT_A_TIME }, async () => {
      for (const ledger of waiting) await this.#look(ledger)
    })
    await Promise.all(lookers)
    return ledgers
  }

  async #look(ledger: UsageLedger): Promise<void> {
    const { clock, sample } = this.#deps
    ledger.beginSampling()
    let timer: Timer | undefined
    const tooLong = new Promise<undefined>((resolve) => {
      timer = clock.after(LONGEST_LOOK_MS, () => resolve(undefined))
    })
    // An engine that cannot tell is looked at again when it next has something to do.
    const seen = await Promise.race([sample(ledger.row.database_id).catch(() => undefined), tooLong])
    timer?.cancel()
    if (seen) ledger.look(seen, clock.now())
  }
}

/** Rejects with `database_not_found` where there is no report. */
export function found<Report>(report: Report | undefined, databaseId: string): Report {
  if (report === undefined) throw new HomeportError('database_not_found', { databaseId })
  return report
}
