import * as usage from '../transactions/usage.js'
import * as usageSample from '../transactions/usage-sample.js'
import type { Counted } from './meter-reader.js'

type DayTotals = usage.DayTotals
type UsageSample = usageSample.UsageSample
const { mergeSamples } = usageSample
const { addDays } = usage

/** What is to be written of one database. */
export interface Taken {
  readonly days: readonly DayTotals[]
  readonly sample: UsageSample | undefined
}

/** A day on which nothing happened. */
export function emptyDay(day: number): DayTotals {
  const nothing = { requests: 0, reads: 0, writes: 0, scripts: 0, others: 0, bytes_in: 0, bytes_out: 0 }
  return { ...nothing, day, cost_nano: 0, held_kib_s: 0 }
}

/** The part of a day that commands have made, at this price of a request in billionths of a US dollar. */
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

/** What has been collected of one database and is not written yet. Costs and holdings may have fractions here. */
export class Pending {
  readonly #days = new Map<number, DayTotals>()
  #sample: UsageSample | undefined
  /** What rounding has left over. */
  #restNano = 0
  #restKibSeconds = 0

  /** Whether there is anything to write. */
  get isEmpty(): boolean {
    return this.#days.size === 0 && this.#sample === undefined
  }

  /** What was done, not yet written. */
  get sample(): UsageSample | undefined {
    return this.#sample
  }

  /** What has been added to days, not yet written. */
  get days(): readonly DayTotals[] {
    return [...this.#days.values()]
  }

  /** Adds to a day. */
  addDay(totals: DayTotals): void {
    const before = this.#days.get(totals.day)
    this.#days.set(totals.day, before ? addDays(before, totals) : totals)
  }

  /** Adds what was done after what is here. */
  addSample(sample: UsageSample): void {
    this.#sample = this.#sample ? mergeSamples(this.#sample, sample) : sample
  }

  /** Corrects what is here by what has been learned since. */
  amendSample(amend: (sample: UsageSample) => UsageSample): void {
    if (this.#sample) this.#sample = amend(this.#sample)
  }

  /** Hands everything over to be written, in whole numbers. */
  take(): Taken {
    const taken: Taken = { days: this.days.map((day) => this.#rounded(day)), sample: this.#sample }
    this.#days.clear()
    this.#sample = undefined
    return taken
  }

  /** Takes back what could not be written. */
  giveBack({ days, sample }: Taken): void {
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
