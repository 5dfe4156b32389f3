import * as usage from '../transactions/usage.js'
import * as usageSample from '../transactions/usage-sample.js'
import type { Counted } from './meter-reader.js'

type DayTotals = usage.DayTotals
type UsageSample = usageSample.UsageSample
const { mergeSamples } = usageSample
const { addDays } = usage

/** The usage of one database that has to be stored. */
export interface PendingUsage {
  readonly days: readonly DayTotals[]
  readonly sample: UsageSample | undefined
}

/** The totals of a day without usage. */
export function emptyDay(day: number): DayTotals {
  const nothing = { requests: 0, reads: 0, writes: 0, scripts: 0, others: 0, bytes_in: 0, bytes_out: 0 }
  return { ...nothing, day, cost_nano: 0, held_kib_s: 0 }
}

/** The counted commands as totals of a day, at this price of a request in billionths of a US dollar. */
export function countedDay(day: number, { counters }: Counted, perRequestNano: number): DayTotals {
  const { requests, reads, writes, scripts, others, bytesIn, bytesOut } = counters
  const cost_nano = requests * perRequestNano
  return {
    ...emptyDay(day),
    requests,
    reads,
    writes,
    scripts,
    others,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
    cost_nano,
  }
}

/** The collected usage of one database that is not stored yet. Costs and storage may have fractions here. */
export class Pending {
  readonly #days = new Map<number, DayTotals>()
  #sample: UsageSample | undefined
  /** Remainders of rounding, carried over to the next write. */
  #restNano = 0
  #restKibSeconds = 0

  /** Whether there is nothing to store. */
  get isEmpty(): boolean {
    return this.#days.size === 0 && this.#sample === undefined
  }

  /** The sample that is not stored yet. */
  get sample(): UsageSample | undefined {
    return this.#sample
  }

  /** The totals by day that are not stored yet. */
  get days(): readonly DayTotals[] {
    return [...this.#days.values()]
  }

  /** Adds to the totals of a day. */
  addDay(totals: DayTotals): void {
    const before = this.#days.get(totals.day)
    this.#days.set(totals.day, before ? addDays(before, totals) : totals)
  }

  /** Merges a later sample. */
  addSample(sample: UsageSample): void {
    this.#sample = this.#sample ? mergeSamples(this.#sample, sample) : sample
  }

  /** Changes the pending sample, if there is one. */
  amendSample(amend: (sample: UsageSample) => UsageSample): void {
    if (this.#sample) this.#sample = amend(this.#sample)
  }

  /** Removes and returns everything, rounded to whole numbers. */
  take(): PendingUsage {
    const taken: PendingUsage = { days: this.days.map((day) => this.#rounded(day)), sample: this.#sample }
    this.#days.clear()
    this.#sample = undefined
    return taken
  }

  /** Puts back what could not be stored. */
  putBack({ days, sample }: PendingUsage): void {
    for (const day of days) this.addDay(day)
    if (sample) this.#sample = this.#sample ? mergeSamples(sample, this.#sample) : sample
  }

  #rounded(day: DayTotals): DayTotals {
    const cost = day.cost_nano + this.#restNano
    const held = day.held_kib_s + this.#restKibSeconds
    const rounded = { ...day, cost_nano: Math.round(cost), held_kib_s: Math.round(held) }
    this.#restNano = cost - rounded.cost_nano
    this.#restKibSeconds = held - rounded.held_kib_s
    return rounded
  }
}
