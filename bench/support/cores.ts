import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/**
 * The cores of the load and of the servers. The load has its own core, and the measured server and its engine have the
 * others. Otherwise rounds of the same code differ by a factor of two: the system moves three processes between two cores
 * from one second to the next, and two processes on one core wake each other with other delays than on two.
 */
export interface Cores {
  /** The description shown with the results. */
  readonly words: string
  /** The program and arguments with which servers are started. */
  readonly launcher: readonly string[]
}

const TOGETHER: Cores = { words: 'load and servers share all cores', launcher: [] }

/**
 * Gives this process and its children the first core, and servers the others. Does nothing if the system cannot do
 * that, or if `HOMEPORT_BENCH_CORES` is `shared`.
 */
export function reserveCores(): Cores {
  const last = availableParallelism() - 1
  if (last < 1 || process.env.HOMEPORT_BENCH_CORES === 'shared') return TOGETHER
  try {
    execFileSync('taskset', ['-a', '-p', '-c', '0', String(process.pid)], { stdio: 'ignore' })
  } catch {
    return TOGETHER
  }
  return { words: `the load has core 0, the servers have the other ${last}`, launcher: ['taskset', '-c', `1-${last}`] }
}
