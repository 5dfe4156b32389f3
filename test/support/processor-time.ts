import { existsSync, readFileSync } from 'node:fs'

/**
 * Measures work for tests that bound its cost. Elapsed time depends on the load of the machine. The ratio between the
 * processor time of one thread and that of a known piece of work in the same run does not.
 */

/** Times of the main thread, whose id is that of the process. Without this file, elapsed time is used instead. */
const TIMES = `/proc/self/task/${process.pid}/schedstat`
const isCounted = existsSync(TIMES)
const NS_PER_MS = 1e6

const UNIT_STEPS = 5_000_000
/** The fastest of these tries counts, because V8 has not compiled the code of the first ones yet. */
const UNIT_TRIES = 5
let unit: number | undefined
/** The result of the multiplications. It is kept, so that V8 does not optimize them away. */
let rest = 0

/** Processor time of the main thread of this process, milliseconds. It advances in steps of some milliseconds. */
export function mainThreadMs(): number {
  return isCounted ? Number(readFileSync(TIMES, 'latin1').split(' ', 1)[0]) / NS_PER_MS : performance.now()
}

/** Milliseconds of processor time that `work` takes on the main thread. */
export function workMs(work: () => void): number {
  const begun = mainThreadMs()
  work()
  return mainThreadMs() - begun
}

/** Processor time of five million multiplications on this machine now, milliseconds: about 20. */
export function unitMs(): number {
  unit ??= Math.min(...Array.from({ length: UNIT_TRIES }, () => workMs(multiply)))
  return unit
}

function multiply(): void {
  for (let i = 0; i < UNIT_STEPS; i++) rest = (rest * 31 + i) | 0
}
