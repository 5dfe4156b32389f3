import type * as usage from '../transactions/usage.js'
import { chargesForUse, type Holding, holdingCosts, MAX_CHARGED_MS, monthStartOf, NANO, type Prices } from './cost.js'
import type { Counted } from './meter-reader.js'
import { countedDay, emptyDay } from './pending.js'

/** The cost of a month, and its requests when they were last charged. */
interface MonthUse {
  readonly start: number
  readonly costNano: number
  readonly requests: number
}

/** What a database is charged for by time. */
export interface Held {
  readonly usedBytes: number
  readonly isSuspended: boolean
}

/** What a bill starts from. */
export interface BillOpening {
  readonly prices: Prices
  /** Until when the time is charged, Unix milliseconds. */
  readonly chargedUntil: number
  readonly nowMs: number
  /** The charges of the current month. */
  readonly month: Omit<MonthUse, 'start'>
}

/**
 * What a database costs in a month. Requests are charged when they are collected. Data and the price of the plan are
 * charged for the time since the last charge. A change of prices, data or suspension must charge the time before
 * (`holdUntil`).
 */
export class Bill {
  #prices: Prices
  #chargedUntil: number
  #month: MonthUse
  /** The month charged before this one, to which charges return when the clock is set back. */
  #monthBefore: MonthUse | undefined

  constructor({ prices, chargedUntil, nowMs, month }: BillOpening) {
    this.#prices = prices
    // If the clock was ahead, the time until `chargedUntil` is charged already. If it was ahead by more than
    // `MAX_CHARGED_MS`, only the end of that time was charged, and charging starts again now.
    this.#chargedUntil = chargedUntil - nowMs > MAX_CHARGED_MS ? nowMs : chargedUntil
    this.#month = { ...month, start: monthStartOf(nowMs) }
  }

  /** Until when the time is charged, Unix milliseconds. */
  get chargedUntil(): number {
    return this.#chargedUntil
  }

  /** Sets what is charged from now on. */
  setPrices(prices: Prices): void {
    this.#prices = prices
  }

  /** Charges the time until now. Returns its totals by day. */
  holdUntil(nowMs: number, held: Held): readonly usage.DayTotals[] {
    const holdings = this.#holdings(nowMs, held)
    for (const { day, costNano } of holdings) this.#charge(day, costNano)
    this.#chargedUntil = Math.max(this.#chargedUntil, nowMs)
    return holdings.map(heldDay)
  }

  /** The totals by day of the time that is not charged yet. */
  uncharged(nowMs: number, held: Held): readonly usage.DayTotals[] {
    return this.#holdings(nowMs, held).map(heldDay)
  }

  /**
   * Charges the counted requests. Returns the totals.
   * @param monthRequests requests of the month until now.
   */
  count(day: number, counted: Counted, monthRequests: number): usage.DayTotals {
    const totals = countedDay(day, counted, this.#prices.perRequest)
    this.#charge(day, totals.cost_nano)
    this.#month = { ...this.#month, requests: monthRequests }
    return totals
  }

  /** Cost of this month until now, billionths of a US dollar. */
  monthCostNano(nowMs: number, held: Held): number {
    const monthStart = monthStartOf(nowMs)
    const uncharged = this.#holdings(nowMs, held).filter(({ day }) => day >= monthStart)
    return uncharged.reduce((sum, { costNano }) => sum + costNano, this.#monthOf(monthStart).costNano)
  }

  /** How many requests of this month a budget pays for, US dollars; 0 is no budget. */
  requestsPaidBy(budget: number, nowMs: number, held: Held): number {
    if (budget === 0 || !chargesForUse(this.#prices)) return Number.POSITIVE_INFINITY
    const leftNano = budget * NANO - this.monthCostNano(nowMs, held)
    const charged = this.#monthOf(monthStartOf(nowMs)).requests
    if (leftNano <= 0) return charged
    if (this.#prices.perRequest === 0) return Number.POSITIVE_INFINITY
    // Rounded, not truncated: the sum of fractions may be a little below a whole number of requests.
    return charged + Math.round(leftNano / this.#prices.perRequest)
  }

  /** The data of a suspended database costs nothing, so that its cost stays within the budget. */
  #holdings(nowMs: number, { usedBytes, isSuspended }: Held): readonly Holding[] {
    const prices = isSuspended ? { ...this.#prices, perGibMonth: 0 } : this.#prices
    return holdingCosts(prices, usedBytes, this.#chargedUntil, nowMs)
  }

  #charge(day: number, costNano: number): void {
    const month = this.#monthOf(monthStartOf(day))
    if (month.start !== this.#month.start) this.#monthBefore = this.#month
    this.#month = { ...month, costNano: month.costNano + costNano }
  }

  #monthOf(start: number): MonthUse {
    const known = [this.#month, this.#monthBefore].find((month) => month?.start === start)
    return known ?? { start, costNano: 0, requests: 0 }
  }
}

function heldDay({ day, costNano, kibSeconds }: Holding): usage.DayTotals {
  return { ...emptyDay(day), cost_nano: costNano, held_kib_s: kibSeconds }
}
