import { ACTIVITY_KINDS } from '../../contract/console/activity.js'
import { BLOCK_MINUTES } from '../../telemetry/index.js'

/** The counts of a minute, by the position in `ACTIVITY_KINDS`. */
export interface MinuteCounts {
  /** Minutes since the start of the block. */
  readonly minute: number
  readonly counts: readonly number[]
}

/** A block as JSON: for each minute with counts, the number of the minute and its counts without the trailing zeros. */
export function packCounts(counts: Uint32Array): string {
  const minutes: number[][] = []
  for (let minute = 0; minute < BLOCK_MINUTES; minute++) {
    const of = counts.subarray(minute * ACTIVITY_KINDS.length, (minute + 1) * ACTIVITY_KINDS.length)
    const last = of.findLastIndex((count) => count > 0)
    if (last >= 0) minutes.push([minute, ...of.subarray(0, last + 1)])
  }
  return JSON.stringify(minutes)
}

/** Reads a packed block. Damaged minutes are left out: these are only statistics. Newer nodes may store more kinds. */
export function unpackCounts(packed: string): readonly MinuteCounts[] {
  const list = parsed(packed)
  if (!Array.isArray(list)) return []
  return list.flatMap((entry: unknown): MinuteCounts[] => {
    if (!Array.isArray(entry) || !entry.every((value): value is number => Number.isSafeInteger(value) && value >= 0)) {
      return []
    }
    const [minute = BLOCK_MINUTES, ...counts] = entry
    return minute < BLOCK_MINUTES ? [{ minute, counts: counts.slice(0, ACTIVITY_KINDS.length) }] : []
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
