const STEPS_PER_OCTAVE = 4
const OCTAVES = 27
/** The steps of every histogram that is empty. */
const NO_COUNTS = new Float64Array(OCTAVES * STEPS_PER_OCTAVE)

/**
 * Durations in steps of a quarter of a doubling, from 1 µs to about 2 minutes: any percentile of them is exact to 25 %.
 * Recording allocates nothing but the steps, once, with the first duration.
 */
export class LatencyHistogram {
  #counts: Float64Array | undefined
  count = 0
  sumUs = 0

  /** How many durations fell into each step. */
  get counts(): ArrayLike<number> {
    return this.#counts ?? NO_COUNTS
  }

  /** Adds a duration in microseconds. */
  record(durationUs: number): void {
    this.count++
    this.sumUs += durationUs
    const step = stepOf(durationUs)
    this.#counts ??= new Float64Array(NO_COUNTS.length)
    this.#counts[step] = (this.#counts[step] ?? 0) + 1
  }

  /**
   * The upper end of the step below which the given share (0 to 1) of the durations lies, microseconds; 0 when empty.
   */
  percentileUs(share: number): number {
    let left = share * this.count
    const { counts } = this
    for (let step = 0; step < counts.length; step++) {
      left -= counts[step] ?? 0
      if (left <= 0 && this.count > 0) return upperEndUs(step)
    }
    return 0
  }
}

/**
 * The same share of durations that lie apart from their histogram: its steps, each followed by its count, ascending.
 * Answers microseconds; 0 without durations.
 */
export function percentileOfSteps(steps: readonly number[], share: number): number {
  let left = 0
  for (let at = 1; at < steps.length; at += 2) left += steps[at] ?? 0
  left *= share
  for (let at = 0; at + 1 < steps.length; at += 2) {
    left -= steps[at + 1] ?? 0
    if (left <= 0) return upperEndUs(steps[at] ?? 0)
  }
  return 0
}

function stepOf(durationUs: number): number {
  const whole = Math.max(STEPS_PER_OCTAVE, Math.ceil(durationUs))
  const octave = 31 - Math.clz32(whole)
  const quarter = (whole >>> (octave - 2)) & (STEPS_PER_OCTAVE - 1)
  return Math.min(octave * STEPS_PER_OCTAVE + quarter, OCTAVES * STEPS_PER_OCTAVE - 1)
}

function upperEndUs(step: number): number {
  const octave = Math.floor(step / STEPS_PER_OCTAVE)
  return 2 ** octave * (1 + ((step % STEPS_PER_OCTAVE) + 1) / STEPS_PER_OCTAVE)
}
