import type { Clock, Service, Timer } from '../../base/index.js'
import type { PlanName, PlanTable } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineSample } from '../../fleet/index.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import { type Logger, nextMonthMs } from '../../telemetry/index.js'
import type { ServingDirectory } from '../directory.js'
import type { DatabaseRow } from '../lifecycle.js'
import type { Suspended } from '../suspended.js'
import * as usage from '../transactions/usage.js'
import { AutoUpgrade } from './auto-upgrade.js'
import { DAY_MS, dayOf, monthStartOf } from './cost.js'
import { type CountedUse, UsageLedger } from './ledger.js'
import { Suspension, type SuspensionDeps } from './suspension.js'
import { RollUps, Writer } from './writer.js'

/** What `Usage` is built from. */
export interface UsageDeps extends Pick<SuspensionDeps, 'inTurn' | 'publish'> {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly plans: PlanTable
  /** How often usage is stored, milliseconds. */
  readonly flushMs: number
  readonly directory: Pick<ServingDirectory, 'follow'>
  /** Why a database is suspended, apart from its budget. */
  readonly suspended: Suspended
  /** Samples the engines of an awake database; see `Fleet.sample`. */
  readonly sample: (databaseId: string) => Promise<EngineSample | undefined>
  /** Called with what clients did, whenever it is collected. */
  readonly onCounted?: ((counted: CountedUse) => void) | undefined
  /** Absent on a server that is alone. */
  readonly cluster?: { readonly isLeader: boolean } | undefined
  readonly changePlan: (caller: Caller, databaseId: string, plan: PlanName) => Promise<void>
}

const monthAround = (nowMs: number) => ({ monthStart: monthStartOf(nowMs), monthEnd: nextMonthMs(nowMs) })

type Known = Pick<ConstructorParameters<typeof UsageLedger>[0], 'standing' | 'month'>

/** Databases sampled in parallel. */
const PARALLEL_SAMPLES = 8
/** A busy engine that takes longer than this is sampled after the next flush interval. */
const SAMPLE_TIMEOUT_MS = 1_000

/** Counts the usage of databases; see `index.ts`. Start it after the databases and before the gateway. */
export class Usage implements Service {
  readonly name = 'usage'
  readonly #deps: UsageDeps
  readonly #ledgers = new Map<string, UsageLedger>()
  /** Stored usage of databases that this node is about to serve. */
  readonly #expected = new Map<string, Known>()
  readonly #writer: Writer
  readonly #suspension: Suspension
  readonly #upgrades: AutoUpgrade
  readonly #rollUps: RollUps
  #unfollow: (() => void) | undefined
  #timer: Timer | undefined
  #flushing: Promise<void> = Promise.resolve()
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
    const { standings, month } = await store.run(usage.load, monthAround(now))
    for (const standing of standings) this.#expected.set(standing.database_id, { standing, month: undefined })
    for (const row of month) {
      const standing = this.#expected.get(row.database_id)?.standing
      this.#expected.set(row.database_id, { standing, month: row })
    }
    const put = (row: DatabaseRow): void => {
      const { database_id: id } = row
      this.#put(row, this.#expected.get(id) ?? { standing: undefined, month: undefined })
      this.#expected.delete(id)
    }
    this.#unfollow = directory.follow({ put, remove: (databaseId) => void this.#ledgers.delete(databaseId) })
    // The remaining usage is of databases that other nodes serve, or that were deleted.
    this.#expected.clear()
    this.#state = 'running'
    for (const ledger of this.#ledgers.values()) void this.#suspension.begin(ledger)
    if (!this.#deps.cluster) this.#rollUps.begin(now)
    this.#schedule()
  }

  /** Stores all usage, up to the last command. */
  async stop(): Promise<void> {
    if (this.#state !== 'running') return
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#flushing
    await Promise.all([this.#suspension.stop(), this.#upgrades.stop(), this.#rollUps.stop()])
    await this.#collect()
    await this.#writer.write()
    this.#unfollow?.()
  }

  /**
   * The ledger of a served database, in which the data plane counts and checks the budget. The same object each time.
   */
  usageOf(databaseId: string): UsageLedger {
    const ledger = this.#ledgers.get(databaseId)
    if (!ledger) throw new Error(`database ${databaseId} is not served`)
    return ledger
  }

  /** The current time, Unix milliseconds. */
  get nowMs(): number {
    return this.#deps.clock.now()
  }

  /** When this process started to count, Unix milliseconds. */
  get startedAtMs(): number {
    return this.#startedAtMs
  }

  /** The store of the ledgers. */
  get store(): Store {
    return this.#deps.store
  }

  /** The ledgers of all served databases. */
  get ledgers(): readonly UsageLedger[] {
    return [...this.#ledgers.values()]
  }

  /** Resolves when the last flush has settled and the next one is scheduled. */
  get flushed(): Promise<void> {
    return this.#flushing
  }

  /** Stores the usage of a database that another node will serve, up to its last command. */
  async handOver(databaseId: string): Promise<void> {
    this.#ledgers.get(databaseId)?.collect(this.nowMs)
    await this.#writer.write()
  }

  /** Loads the stored usage of a database that this node is about to serve. */
  async expect(databaseId: string): Promise<void> {
    const month = monthAround(this.nowMs)
    this.#expected.set(databaseId, await this.#deps.store.run(usage.loadOne, { databaseId, ...month }))
  }

  /** Notes that the data of a database was replaced without a command of a client. */
  dataReplaced(databaseId: string): void {
    this.#ledgers.get(databaseId)?.dataReplaced()
  }

  /** Collects what the databases of an account have counted until now. */
  collectOf(accountId: string): void {
    const now = this.nowMs
    for (const ledger of this.#ledgers.values()) if (ledger.row.account_id === accountId) ledger.collect(now)
  }

  /** Resolves when the state of a database matches its budget, after either has changed. */
  async settle(databaseId: string): Promise<void> {
    const ledger = this.#ledgers.get(databaseId)
    if (ledger && this.#state === 'running') await this.#suspension.settle(ledger)
  }

  /**
   * Reads a report from the store and completes it with usage that is not stored yet, up to the current command. Asks an
   * awake engine for keys and sizes first, if they may have changed.
   * @param complete gets the report and the ledger of the same moment; no ledger when the database is not served.
   */
  async report<Report, Complete>(
    databaseId: string,
    read: () => Promise<Report>,
    complete: (report: Report, ledger: UsageLedger | undefined) => Complete,
  ): Promise<Complete> {
    const known = this.#ledgers.get(databaseId)
    known?.collect(this.nowMs)
    if (known?.needsSample) await this.#sample(known)
    for (;;) {
      const version = await this.#writer.settled()
      const report = await read()
      if (version !== this.#writer.version) continue
      const ledger = this.#ledgers.get(databaseId)
      ledger?.collect(this.nowMs)
      return complete(report, ledger)
    }
  }

  #put(row: DatabaseRow, known: Known): void {
    const { plans, clock, suspended, onCounted } = this.#deps
    const present = this.#ledgers.get(row.database_id)
    if (present) {
      present.update(row, clock.now())
      // The price has changed: the cost at the old price must be stored before usage at the new price.
      if (!present.pending.isEmpty) this.#writer.writeSoon()
      return
    }
    const onBudgetSpent = (): void => {
      const ledger = this.#ledgers.get(row.database_id)
      // A command may be counted after the database was deleted or got another home.
      if (ledger) void this.#suspension.begin(ledger)
    }
    this.#ledgers.set(
      row.database_id,
      new UsageLedger({ row, plans, nowMs: clock.now(), suspended, onBudgetSpent, onCounted, ...known }),
    )
  }

  #schedule(): void {
    if (this.#state !== 'running') return
    const { clock, flushMs } = this.#deps
    const now = clock.now()
    const next = Math.min(now - (now % flushMs) + flushMs, dayOf(now) + DAY_MS)
    this.#timer = clock.after(next - now, () => {
      // The timer waits for a span of time, even if the clock is set. So the difference shows how far the clock was set.
      this.#rollUps.jumped(clock.now() - next, clock.now())
      this.#flushing = this.#flush()
        .catch((error: unknown) => this.#deps.logger.warn('usage_not_stored', { error }))
        .finally(() => this.#schedule())
    })
  }

  async #flush(): Promise<void> {
    const now = this.#deps.clock.now()
    const collected = await this.#collect()
    for (const ledger of this.#ledgers.values()) ledger.updateRequestLimit(this.#deps.clock.now())
    await this.#writer.write()
    for (const ledger of this.#ledgers.values()) void this.#suspension.begin(ledger)
    for (const ledger of collected) this.#upgrades.consider(ledger)
    this.#rollUp(now, collected.length > 0)
  }

  /**
   * In a cluster, the leader rolls up the series of all nodes, one flush interval later than a server that is alone: the
   * other nodes store their usage at the same moment.
   */
  #rollUp(now: number, hasWritten: boolean): void {
    const { cluster, flushMs } = this.#deps
    if (!cluster) this.#rollUps.check(now, hasWritten)
    else if (cluster.isLeader) this.#rollUps.check(now - flushMs, true)
  }

  /** Collects all meters at one moment, then samples the engines of the databases that were in use. */
  async #collect(): Promise<readonly UsageLedger[]> {
    const now = this.#deps.clock.now()
    this.#writer.collectedAt = now
    for (const ledger of this.#ledgers.values()) ledger.collect(now)
    const ledgers = [...this.#ledgers.values()].filter((ledger) => ledger.needsSample)
    const waiting = ledgers.values()
    const samplers = Array.from({ length: PARALLEL_SAMPLES }, async () => {
      for (const ledger of waiting) await this.#sample(ledger)
    })
    await Promise.all(samplers)
    return ledgers
  }

  async #sample(ledger: UsageLedger): Promise<void> {
    const { clock, sample } = this.#deps
    ledger.beginSampling()
    let timer: Timer | undefined
    const tooLong = new Promise<undefined>((resolve) => {
      timer = clock.after(SAMPLE_TIMEOUT_MS, () => resolve(undefined))
    })
    // An engine that does not answer is sampled again when it has been used again.
    const seen = await Promise.race([sample(ledger.row.database_id).catch(() => undefined), tooLong])
    timer?.cancel()
    if (seen) ledger.addEngineSample(seen, clock.now())
  }
}

/** Throws `database_not_found` when there is no report. */
export function found<Report>(report: Report | undefined, databaseId: string): Report {
  if (report === undefined) throw new HomeportError('database_not_found', { databaseId })
  return report
}
