import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/**
 * Which cores the load and the servers have. Two processes that land on one core wake each other in another rhythm than
 * two apart, and where the system puts three on two cores changes from one second to the next: without this, rounds of
 * one and the same code differ by a factor of two. So the load has a core to itself, and whoever is measured, with its
 * engine, has the others.
 */
export interface Cores {
  /** How it is said beside the results. */
  readonly words: string
  /** What a server has to be started with. */
  readonly launcher: readonly string[]
}

const TOGETHER: Cores = { words: 'load and servers share all cores', launcher: [] }

/**
 * Gives this process, and what it starts, the first core, and servers the others. Where the system cannot do that, or
 * `HOMEPORT_BENCH_CORES` is `shared`, everything stays as it is.
 */
export function setApart(): Cores {
  const last = availableParallelism() - 1
  if (last < 1 || process.env.HOMEPORT_BENCH_CORES === 'shared') return TOGETHER
  try {
    execFileSync('taskset', ['-a', '-p', '-c', '0', String(process.pid)], { stdio: 'ignore' })
  } catch {
    return TOGETHER
  }
  return { words: `the load has core 0, the servers have the other ${last}`, launcher: ['taskset', '-c', `1-${last}`] }
}
