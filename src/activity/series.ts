import { ACTIVITY_KINDS, type Activity, type ActivityKind } from '../contract/console/activity.js'
import { MINUTE_MS } from '../telemetry/index.js'
import { type MinuteCounts, unpackCounts } from './transactions/packed-counts.js'

/** A block of counts to add. */
export interface SeriesBlock {
  /** When it began, Unix milliseconds. */
  readonly start: number
  /** As packed by `packCounts`. */
  readonly counts: string
}

/** Which steps a series has. */
export interface SeriesSpan {
  /** Start of the first step, Unix milliseconds. */
  readonly from: number
  /** Length of a step: whole minutes, milliseconds. */
  readonly stepMs: number
  readonly steps: number
}

/** The steps of a period that ends with the current one. Steps begin at multiples of their length. */
export function spanOf(
  now: number,
  { seconds, step }: { readonly seconds: number; readonly step: number },
): SeriesSpan {
  const stepMs = step * 1_000
  const steps = seconds / step
  return { from: now - (now % stepMs) - (steps - 1) * stepMs, stepMs, steps }
}

/** Adds up blocks to one series for each kind. Minutes outside of the span are left out. */
export function seriesOf(blocks: readonly SeriesBlock[], { from, stepMs, steps }: SeriesSpan): Activity['series'] {
  const series = ACTIVITY_KINDS.map(() => new Array<number>(steps).fill(0))
  const add = (start: number, { minute, counts }: MinuteCounts): void => {
    const step = Math.floor((start + minute * MINUTE_MS - from) / stepMs)
    if (step < 0 || step >= steps) return
    counts.forEach((count, position) => {
      const own = series[position]
      if (own) own[step] = (own[step] ?? 0) + count
    })
  }
  for (const { start, counts } of blocks) for (const minute of unpackCounts(counts)) add(start, minute)
  // Safe: one entry for each kind.
  return Object.fromEntries(ACTIVITY_KINDS.map((kind, position) => [kind, series[position]])) as Record<
    ActivityKind,
    number[]
  >
}
