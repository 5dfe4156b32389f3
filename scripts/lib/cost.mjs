import { existsSync, readFileSync } from 'node:fs'

/** Linux reports processor time to programs in hundredths of a second on every machine. */
const TICKS_PER_SECOND = 100
const OWN_TIMES = '/proc/self/stat'

/**
 * Processor time of this process and of its ended descendants, seconds; `undefined` if the system does not report it.
 * Processes that outlived their parent are missing, such as the engines of a server that a test kills.
 */
export function processorSeconds() {
  if (!existsSync(OWN_TIMES)) return undefined
  const text = readFileSync(OWN_TIMES, 'latin1')
  // The name of the program, in parentheses, may contain spaces. Later fields are the user and system times of the process
  // itself and of its children.
  const times = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
  return times.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND
}

/** What the run has cost so far, as one line: `took 465 s, and 803 s of processor time`. */
export function costSoFar() {
  const processor = processorSeconds()
  const took = `took ${Math.round(performance.now() / 1000)} s`
  return processor === undefined ? took : `${took}, and ${Math.round(processor)} s of processor time`
}
