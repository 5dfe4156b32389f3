/** A quantile: the value below which this share (0 to 1) of the values lie. The values need not be sorted. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}

/** The median. */
export const median = (numbers: readonly number[]): number => percentile(numbers, 0.5)
