/** A histogram as a scrape reads it: the count of each bucket, and the sum of all values. */
export interface HistogramFigure {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[]
  /** Values in each bucket, not cumulative; the last one is for values above every bound. */
  readonly counts: ArrayLike<number>
  readonly sum: number
}

/** Bounds for requests to other servers, seconds. */
export const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900]
/** Bounds for transactions, seconds. */
export const TRANSACTION_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
/** Bounds for attempts. */
export const ATTEMPTS = [1, 2, 3, 4, 6, 10, 20]

/** Counts values in buckets with fixed bounds. Recording allocates nothing. */
export class Histogram implements HistogramFigure {
  readonly bounds: readonly number[]
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** Counts a value. A negative value, as after a correction of the clock, counts as 0. */
  record(value: number): void {
    const { bounds, counts } = this
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++
    counts[bucket] = (counts[bucket] ?? 0) + 1
    if (value > 0) this.sum += value
  }
}
