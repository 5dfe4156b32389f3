import { PLAN_NAMES, type PlanTable } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineSample } from '../../fleet/index.js'
import { DatabaseMeter, monthIndex } from '../../telemetry/index.js'
import { planNameOf, planOf, readRegionsOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import { haltOf, type Suspended } from '../suspended.js'
import type * as usage from '../transactions/usage.js'
import type * as usageSample from '../transactions/usage-sample.js'
import { Bill, type Held } from './bill.js'
import { dayOf, pricesOf } from './cost.js'
import { type Counted, LookupReader, MeterReader, NOTHING_COUNTED } from './meter-reader.js'
import { Pending, type PendingUsage } from './pending.js'

type StandingRow = usage.StandingRow
type UsageGauges = usageSample.UsageGauges
type UsageSample = usageSample.UsageSample

/** Whether commands are served, as the gateway reads it (`DatabaseUsage`). */
export type Admission = { readonly kind: 'open' } | { readonly kind: 'refused'; readonly error: HomeportError }

const OPEN: Admission = { kind: 'open' }
const SPENT: Admission = { kind: 'refused', error: new HomeportError('budget_exceeded', {}) }

/** What clients of a database did, for the activity of its account. */
export interface CountedUse {
  readonly accountId: string
  /** Commands that were sent to engines. */
  readonly commands: number
  /** Commands and clients that were refused because of a limit. */
  readonly refused: number
}

/** What a ledger starts from. */
export interface Opening {
  readonly row: DatabaseRow
  readonly plans: PlanTable
  readonly nowMs: number
  /** The state as stored last. */
  readonly standing?: StandingRow | undefined
  /** The stored usage of the current month. */
  readonly month?: { readonly requests: number; readonly cost_nano: number; readonly bytes?: number } | undefined
  /** Why the database is suspended, apart from its budget. */
  readonly suspended: Suspended
  /** Called once when the budget is spent, while a command is being handled. */
  readonly onBudgetSpent: () => void
  /** Called with what was counted since the last call. Default: nobody needs it. */
  readonly onCounted?: ((counted: CountedUse) => void) | undefined
}

/**
 * The usage of one database, in memory.
 *
 * ```
 *   gateway ── counts in `meter`, reads `admission` for each command
 *                 │ collect: before a change, and once per flush interval
 *                 ▼
 *   bill ◀── differences, and the time ──▶ pending ── take ──▶ the store
 *                                             ▲
 *   fleet ── addEngineSample ─────────────────┘
 * ```
 *
 * Invariant: what was used before a change of plan, suspension or read regions is charged as it was then.
 */
export class UsageLedger {
  readonly meter = new DatabaseMeter()
  readonly pending = new Pending()
  readonly #reader = new MeterReader(this.meter)
  readonly #lookups = new LookupReader()
  readonly #plans: PlanTable
  readonly #onBudgetSpent: () => void
  readonly #suspended: Suspended
  readonly #bill: Bill
  #row: DatabaseRow
  /** The plan whose prices the bill uses. */
  #plan: string
  #gauges: Omit<UsageGauges, 'open'>
  /** When the engines were last sampled, Unix milliseconds; 0 for never. */
  #sampledAt: number
  /** How many requests of this month the budget pays for. */
  #requestLimit = Number.POSITIVE_INFINITY
  /** Whether `onBudgetSpent` was called for this limit. */
  #isReported = false
  /** Set while somebody has suspended the database; kept, because the gateway reads it for every command. */
  #halted: Admission | undefined
  readonly #onCounted: ((counted: CountedUse) => void) | undefined
  /** Refused commands and clients that were reported to `#onCounted`. */
  #refused = 0
  /** Commands refused because the data set is full, as `refusedForSpace` has seen them. */
  #refusals = 0
  #needsSample = false

  constructor({ row, plans, nowMs, standing, month, suspended, onBudgetSpent, onCounted }: Opening) {
    this.#onCounted = onCounted
    this.#row = row
    this.#plans = plans
    this.#onBudgetSpent = onBudgetSpent
    this.#suspended = suspended
    const plan = PLAN_NAMES.find((name) => name === standing?.plan) ?? planNameOf(row)
    this.#plan = plan
    const { keys = 0, used_bytes: usedBytes = 0, disk_bytes: diskBytes = 0, looked_at = 0 } = standing ?? {}
    this.#gauges = { keys, usedBytes, diskBytes, monitors: 0 }
    this.#sampledAt = looked_at
    const { requests = 0, cost_nano: costNano = 0, bytes = 0 } = month ?? {}
    const chargedUntil = standing?.accounted_at ?? Math.min(row.created_at, nowMs)
    this.#bill = new Bill({ prices: pricesOf(plans[plan]), chargedUntil, nowMs, month: { costNano, requests } })
    Object.assign(this.meter.month, { index: monthIndex(nowMs), requests, bytesOffset: -bytes })
    this.update(row, nowMs)
  }

  /** The current row of the database. */
  get row(): DatabaseRow {
    return this.#row
  }

  /** Size of the data set in the last engine sample, bytes. */
  get usedBytes(): number {
    return this.#gauges.usedBytes
  }

  /** Whether commands are served. The gateway reads it for every command. */
  get admission(): Admission {
    if (this.#halted !== undefined) return this.#halted
    return this.#row.state === 'suspended' || this.isBudgetSpent ? this.#refuse() : OPEN
  }

  /** Whether the cost of the month has reached the budget; always false on plans that do not charge for usage. */
  get isBudgetSpent(): boolean {
    return this.meter.month.requests >= this.#requestLimit
  }

  /** Whether the database is suspended, for whatever reason. */
  get isSuspended(): boolean {
    return this.#halted !== undefined || this.#row.state === 'suspended'
  }

  /** Whether the meter has counted anything since the last `collect`. */
  get hasChanged(): boolean {
    return this.#reader.hasChanged
  }

  /** Whether the data may have changed since the last engine sample. */
  get needsSample(): boolean {
    return this.#needsSample
  }

  /** The current gauges, as far as they are known. */
  get gauges(): UsageGauges {
    return { ...this.#gauges, open: this.meter.connections }
  }

  /** Whether commands were refused since the last call because the data set is full. */
  refusedForSpace(): boolean {
    const { refusedForSpace } = this.meter
    const hasMore = refusedForSpace > this.#refusals
    this.#refusals = refusedForSpace
    return hasMore
  }

  /** Takes a changed row. Usage until now is charged at the old price. */
  update(row: DatabaseRow, nowMs: number): void {
    const changesPrice = row.plan !== this.#plan || row.state !== this.#row.state
    if (changesPrice || row.read_regions !== this.#row.read_regions) this.collect(nowMs)
    if (changesPrice) this.#charge(nowMs)
    if (row.plan !== this.#plan) this.#refusals = this.meter.refusedForSpace
    this.#row = row
    const error = haltOf(row, this.#suspended)
    this.#halted = error && { kind: 'refused', error }
    this.#plan = row.plan
    this.#bill.setPrices(pricesOf(planOf(row, this.#plans)))
    this.updateRequestLimit(nowMs)
  }

  /** Moves what the meter has counted since the last call into the pending writes. */
  collect(nowMs: number): void {
    if (!this.#reader.hasChanged) return
    this.#needsSample = true
    this.#charge(nowMs)
    const counted = this.#reader.read(1 + readRegionsOf(this.#row).length)
    this.pending.addDay(this.#bill.count(dayOf(nowMs - 1), counted, this.meter.month.requests))
    this.pending.addSample(this.#sampleOf(counted))
    this.#reportCounted(counted)
  }

  #reportCounted({ counters: { reads, writes, scripts, others } }: Counted): void {
    const { refusedForSpace, refusedForRequests, refusedClients } = this.meter
    const refused = refusedForSpace + refusedForRequests + refusedClients
    const commands = reads + writes + scripts + others
    this.#onCounted?.({ accountId: this.#row.account_id, commands, refused: refused - this.#refused })
    this.#refused = refused
  }

  /** Notes that the data was replaced without a command of a client. */
  dataReplaced(): void {
    this.#needsSample = true
  }

  /** A sample of the engines is being taken, so none is needed until the next `collect`. */
  beginSampling(): void {
    this.#needsSample = false
  }

  /** Takes a sample of the engines. */
  addEngineSample(sample: EngineSample, nowMs: number): void {
    const { keys, usedBytes, diskBytes, monitors } = sample
    this.#charge(nowMs)
    this.#gauges = { keys, usedBytes, diskBytes, monitors }
    this.#sampledAt = nowMs
    const { hits, misses } = this.#lookups.read(sample.lookups)
    // The sample that was collected before may have been stored while the engine was queried.
    if (!this.pending.sample && hits + misses > 0) this.pending.addSample(this.#sampleOf(NOTHING_COUNTED))
    this.pending.amendSample(({ counters, ...rest }) => ({
      ...rest,
      counters: { ...counters, hits: counters.hits + hits, misses: counters.misses + misses },
      gauges: { ...rest.gauges, ...this.#gauges },
    }))
  }

  /** Recomputes how many requests of this month the budget pays for. */
  updateRequestLimit(nowMs: number): void {
    this.#turnMonth(nowMs)
    this.#isReported = false
    this.#requestLimit = this.#bill.requestsPaidBy(this.#row.budget, nowMs, this.#held)
  }

  /** Requests of this month until now, as billed. */
  monthRequests(nowMs: number): number {
    const { index, requests } = this.meter.month
    return index === monthIndex(nowMs) ? requests : 0
  }

  /** Cost of this month until now, billionths of a US dollar, without commands that are not collected yet. */
  monthCostNano(nowMs: number): number {
    return this.#bill.monthCostNano(nowMs, this.#held)
  }

  /** Totals by day that are not stored yet: collected usage, and the cost of storage since it was last accounted. */
  pendingDays(nowMs: number): readonly usage.DayTotals[] {
    return [...this.pending.days, ...this.#bill.uncharged(nowMs, this.#held)]
  }

  /** Removes and returns what has to be stored. */
  take(): PendingUsage & { readonly standing: StandingRow } {
    const { keys, usedBytes, diskBytes } = this.#gauges
    const standing: StandingRow = {
      database_id: this.#row.database_id,
      accounted_at: this.#bill.chargedUntil,
      plan: this.#plan,
      looked_at: this.#sampledAt,
      keys,
      used_bytes: usedBytes,
      disk_bytes: diskBytes,
    }
    return { ...this.pending.take(), standing }
  }

  #refuse(): Admission {
    if (!this.#isReported && this.#row.state !== 'suspended') {
      this.#isReported = true
      this.#onBudgetSpent()
    }
    return SPENT
  }

  /** Turns to another month. The gateway does the same at its next command. */
  #turnMonth(nowMs: number): void {
    const index = monthIndex(nowMs)
    if (this.meter.month.index !== index) this.meter.turnMonth(index)
  }

  get #held(): Held {
    return { usedBytes: this.#gauges.usedBytes, isSuspended: this.#row.state === 'suspended' }
  }

  #charge(nowMs: number): void {
    for (const day of this.#bill.holdUntil(nowMs, this.#held)) this.pending.addDay(day)
  }

  #sampleOf({ counters, ...rest }: Counted): UsageSample {
    return { ...rest, counters: { ...counters, hits: 0, misses: 0 }, gauges: this.gauges }
  }
}
