import { PLAN_NAMES, type PlanTable } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineSample } from '../../fleet/index.js'
import { DatabaseMeter, monthIndex } from '../../telemetry/index.js'
import { planNameOf, planOf, readRegionsOf } from '../desired-engine.js'
import type { DatabaseRow } from '../life.js'
import { haltOf, type Suspended } from '../suspended.js'
import type * as usage from '../transactions/usage.js'
import type * as usageSample from '../transactions/usage-sample.js'
import { chargesForUse, dayOf, type Holding, holdingCosts, monthStartOf, NANO, type Prices, pricesOf } from './cost.js'
import { type Counted, MeterReader } from './meter-reader.js'
import { countedDay, emptyDay, Pending, type PendingUsage } from './pending.js'

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

/** What a month has cost, and its requests. */
interface MonthUse {
  readonly start: number
  readonly costNano: number
  readonly requests: number
}

/** The usage of one database, in memory. */
export class UsageLedger {
  readonly meter = new DatabaseMeter()
  readonly pending = new Pending()
  readonly #reader = new MeterReader(this.meter)
  readonly #plans: PlanTable
  readonly #onBudgetSpent: () => void
  readonly #suspended: Suspended
  readonly #lookups = new Map<number, { readonly hits: number; readonly misses: number }>()
  #row: DatabaseRow
  #prices: Prices
  #plan: string
  #accountedAt: number
  /** The month of `#accountedAt`. */
  #month: MonthUse
  /** The one that was counted before: a clock that is set back returns to it. */
  #monthBefore: MonthUse | undefined
  #gauges: Omit<UsageGauges, 'open'>
  /** When the engines were last sampled, Unix milliseconds; 0 for never. */
  #sampledAt: number
  /** How many requests of this month the budget pays for. */
  #requestLimit = Number.POSITIVE_INFINITY
  #isReported = false
  /** Set while somebody has suspended the database; kept, because the gateway reads it for every command. */
  #halted: Admission | undefined
  #refusals = 0
  readonly #onCounted: ((counted: CountedUse) => void) | undefined
  /** Refused commands and clients that were reported. */
  #refused = 0
  #needsSample = false

  constructor({ row, plans, nowMs, standing, month, suspended, onBudgetSpent, onCounted }: Opening) {
    this.#onCounted = onCounted
    this.#row = row
    this.#plans = plans
    this.#onBudgetSpent = onBudgetSpent
    this.#suspended = suspended
    this.#plan = PLAN_NAMES.find((name) => name === standing?.plan) ?? planNameOf(row)
    this.#prices = pricesOf(plans[PLAN_NAMES.find((name) => name === this.#plan) ?? planNameOf(row)])
    this.#accountedAt = Math.min(standing?.accounted_at ?? row.created_at, nowMs)
    const { keys = 0, used_bytes: usedBytes = 0, disk_bytes: diskBytes = 0, looked_at = 0 } = standing ?? {}
    this.#gauges = { keys, usedBytes, diskBytes, monitors: 0 }
    this.#sampledAt = looked_at
    const { requests = 0, cost_nano: costNano = 0, bytes = 0 } = month ?? {}
    this.#month = { start: monthStartOf(nowMs), costNano, requests }
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
    const isRefused = this.#row.state === 'suspended' || this.meter.month.requests >= this.#requestLimit
    return isRefused ? this.#refuse() : OPEN
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

  /** Whether anything has been collected since the last engine sample. */
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
    if (changesPrice) this.#account(nowMs)
    if (row.plan !== this.#plan) this.#refusals = this.meter.refusedForSpace
    this.#row = row
    const error = haltOf(row, this.#suspended)
    this.#halted = error && { kind: 'refused', error }
    this.#plan = row.plan
    this.#prices = pricesOf(planOf(row, this.#plans))
    this.updateRequestLimit(nowMs)
  }

  /** Moves what the meter has counted since the last call into the pending writes. */
  collect(nowMs: number): void {
    if (!this.#reader.hasChanged) return
    this.#needsSample = true
    this.#account(nowMs)
    const counted = this.#reader.read(1 + readRegionsOf(this.#row).length)
    const day = countedDay(dayOf(nowMs - 1), counted, this.#prices.perRequest)
    this.pending.addDay(day)
    this.pending.addSample(this.#sampleOf(counted))
    this.#addCost(day.day, day.cost_nano)
    this.#month = { ...this.#month, requests: this.meter.month.requests }
    this.#reportCounted(counted)
  }

  #reportCounted({ counters: { reads, writes, scripts, others } }: Counted): void {
    const { refusedForSpace, refusedForRequests, refusedClients } = this.meter
    const refused = refusedForSpace + refusedForRequests + refusedClients
    const commands = reads + writes + scripts + others
    this.#onCounted?.({ accountId: this.#row.account_id, commands, refused: refused - this.#refused })
    this.#refused = refused
  }

  /** A sample of the engines is being taken, so none is needed until the next `collect`. */
  beginSampling(): void {
    this.#needsSample = false
  }

  /** Takes a sample of the engines. */
  addEngineSample(sample: EngineSample, nowMs: number): void {
    const { keys, usedBytes, diskBytes, monitors } = sample
    this.#account(nowMs)
    this.#gauges = { keys, usedBytes, diskBytes, monitors }
    this.#sampledAt = nowMs
    const { hits, misses } = this.#newLookups(sample)
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
    this.#requestLimit = this.#requestsPaidFor(nowMs)
  }

  /** Requests of this month until now, as billed. */
  monthRequests(nowMs: number): number {
    const { index, requests } = this.meter.month
    return index === monthIndex(nowMs) ? requests : 0
  }

  /** Cost of this month until now, billionths of a US dollar, without commands that are not collected yet. */
  monthCostNano(nowMs: number): number {
    const monthStart = monthStartOf(nowMs)
    const held = this.#holdings(nowMs).filter(({ day }) => day >= monthStart)
    const heldNano = held.reduce((sum, holding) => sum + holding.costNano, 0)
    return heldNano + this.#monthOf(monthStart).costNano
  }

  /** Totals by day that are not stored yet: collected usage, and the cost of storage since it was last accounted. */
  pendingDays(nowMs: number): readonly usage.DayTotals[] {
    return [...this.pending.days, ...this.#holdings(nowMs).map(heldDay)]
  }

  /** Removes and returns what has to be stored. */
  take(): PendingUsage & { readonly standing: StandingRow } {
    const { keys, usedBytes, diskBytes } = this.#gauges
    const standing: StandingRow = {
      database_id: this.#row.database_id,
      accounted_at: this.#accountedAt,
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

  #requestsPaidFor(nowMs: number): number {
    const { budget } = this.#row
    if (budget === 0 || !chargesForUse(this.#prices)) return Number.POSITIVE_INFINITY
    const leftNano = budget * NANO - this.monthCostNano(nowMs)
    const counted = this.#monthOf(monthStartOf(nowMs)).requests
    if (leftNano <= 0) return counted
    if (this.#prices.perRequest === 0) return Number.POSITIVE_INFINITY
    // Rounded, not truncated: the sum of fractions may be a little below a whole number of requests.
    return counted + Math.round(leftNano / this.#prices.perRequest)
  }

  /** Turns to another month. The gateway does the same at its next command. */
  #turnMonth(nowMs: number): void {
    const { month } = this.meter
    const index = monthIndex(nowMs)
    if (month.index === index) return
    this.meter.turnMonth(index)
  }

  #account(nowMs: number): void {
    for (const holding of this.#holdings(nowMs)) {
      this.pending.addDay(heldDay(holding))
      this.#addCost(holding.day, holding.costNano)
    }
    this.#accountedAt = Math.max(this.#accountedAt, nowMs)
  }

  /** The data of a suspended database costs nothing, so that its cost stays within the budget. */
  #holdings(nowMs: number): readonly Holding[] {
    const prices = this.#row.state === 'suspended' ? { ...this.#prices, perGibMonth: 0 } : this.#prices
    return holdingCosts(prices, this.#gauges.usedBytes, this.#accountedAt, nowMs)
  }

  #addCost(day: number, costNano: number): void {
    const month = this.#monthOf(monthStartOf(day))
    if (month.start !== this.#month.start) this.#monthBefore = this.#month
    this.#month = { ...month, costNano: month.costNano + costNano }
  }

  #monthOf(start: number): MonthUse {
    const known = [this.#month, this.#monthBefore].find((month) => month?.start === start)
    return known ?? { start, costNano: 0, requests: 0 }
  }

  #newLookups({ lookups }: EngineSample): { hits: number; misses: number } {
    const sums = { hits: 0, misses: 0 }
    for (const { generation, hits, misses } of lookups) {
      const before = this.#lookups.get(generation) ?? { hits: 0, misses: 0 }
      sums.hits += Math.max(0, hits - before.hits)
      sums.misses += Math.max(0, misses - before.misses)
    }
    this.#lookups.clear()
    for (const { generation, hits, misses } of lookups) this.#lookups.set(generation, { hits, misses })
    return sums
  }

  #sampleOf({ counters, ...rest }: Counted): UsageSample {
    return { ...rest, counters: { ...counters, hits: 0, misses: 0 }, gauges: this.gauges }
  }
}

function heldDay({ day, costNano, kibSeconds }: Holding): usage.DayTotals {
  return { ...emptyDay(day), cost_nano: costNano, held_kib_s: kibSeconds }
}
