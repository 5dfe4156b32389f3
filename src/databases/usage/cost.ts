import type { Plan } from '../../contract/databases/plans.js'
import { nextMonthMs } from '../../telemetry/index.js'

/** Length of a day, milliseconds. */
export const DAY_MS = 24 * 60 * 60 * 1000

const GIB = 2 ** 30
const KIB = 1024
/** Costs are counted in billionths of a US dollar. */
export const NANO = 1_000_000_000

/** What a plan charges, billionths of a US dollar. */
export interface Prices {
  readonly perRequest: number
  readonly perMonth: number
  readonly perGibMonth: number
}

/** The prices of a plan. */
export function pricesOf(plan: Plan): Prices {
  return {
    perRequest: (plan.price_per_100k_commands / 100_000) * NANO,
    perMonth: plan.price_per_month * NANO,
    perGibMonth: plan.price_per_gb_month * NANO,
  }
}

/** Whether a plan charges for usage; only then can usage spend a budget. */
export function chargesForUse({ perRequest, perGibMonth }: Prices): boolean {
  return perRequest > 0 || perGibMonth > 0
}

/** Start of the day of a time (midnight UTC), Unix milliseconds. */
export function dayOf(atMs: number): number {
  return atMs - (atMs % DAY_MS)
}

/** Start of the month of a time (midnight UTC), Unix milliseconds. */
export function monthStartOf(atMs: number): number {
  const date = new Date(atMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}

/** Storage of a data set during one day or less, and its cost. */
export interface Holding {
  readonly day: number
  /** Billionths of a US dollar, with fractions. */
  readonly costNano: number
  /** KiB times seconds, with fractions. */
  readonly kibSeconds: number
}

/** Storage is accounted at most this far back, milliseconds. */
export const MAX_CHARGED_MS = 400 * DAY_MS

/**
 * The storage of `bytes` from one time to another, split by day. The monthly price accrues evenly over the month. Storage
 * beyond the first gigabyte is charged for the time that it is held.
 */
export function holdingCosts(prices: Prices, bytes: number, fromMs: number, toMs: number): readonly Holding[] {
  const holdings: Holding[] = []
  const billedGib = Math.max(0, bytes / GIB - 1)
  for (let from = Math.max(fromMs, toMs - MAX_CHARGED_MS); from < toMs; ) {
    const to = Math.min(toMs, dayOf(from) + DAY_MS)
    const shareOfMonth = (to - from) / (nextMonthMs(from) - monthStartOf(from))
    const costNano = (prices.perMonth + prices.perGibMonth * billedGib) * shareOfMonth
    holdings.push({ day: dayOf(from), costNano, kibSeconds: ((bytes / KIB) * (to - from)) / 1000 })
    from = to
  }
  return holdings
}
