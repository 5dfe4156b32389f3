import { existsSync, readFileSync } from 'node:fs'

/**
 * Bounds of tests on how long something works. Time on a clock depends on what else the machine does; the processor time of
 * one thread, compared with a known piece of work of the same run, does not.
 */

/** The first thread of a process has its id. Where there is no such file, the time that has passed has to do. */
const TIMES = `/proc/self/task/${process.pid}/schedstat`
const isCounted = existsSync(TIMES)
const NS_PER_MS = 1e6

const UNIT_STEPS = 5_000_000
/** The least of these tries counts: V8 has not compiled the first ones yet. */
const UNIT_TRIES = 5
let unit: number | undefined
/** Keeps the result of the unit, so that it is not optimized away. */
let rest = 0

/** Processor time of the main thread of this process, milliseconds. It is counted in steps of some milliseconds. */
export function mainThreadMs(): number {
  return isCounted ? Number(readFileSync(TIMES, 'latin1').split(' ', 1)[0]) / NS_PER_MS : performance.now()
}

/** Milliseconds of processor time that `work` takes on the main thread. */
export function workMs(work: () => void): number {
  const begun = mainThreadMs()
  work()
  return mainThreadMs() - begun
}

/** How long this machine takes now for five million multiplications, milliseconds: about 20. */
export function unitMs(): number {
  unit ??= Math.min(...Array.from({ length: UNIT_TRIES }, () => workMs(multiply)))
  return unit
}

function multiply(): void {
  for (let i = 0; i < UNIT_STEPS; i++) rest = (rest * 31 + i) | 0
}
