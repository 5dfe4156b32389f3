import type { Clock } from './clock.js'

/**
 * Something that lives as long as the process: a listener, a poller, a supervisor.
 * `start` resolves when it serves and may be called once; `stop` finishes what is in flight, frees everything,
 * and may be called at any time and more than once.
 */
export interface Service {
  readonly name: string
  start(): Promise<void>
  /** @param graceMs what is in flight gets this long; absent: as long as the part was made with. */
  stop(graceMs?: number): Promise<void>
}

/** Parts of which none needs another while they stop. */
export type SideBySide = readonly Service[]

/** How long the parts that are stopped may take together. */
export interface SharedGrace {
  readonly clock: Clock
  readonly graceMs: number
}

/**
 * Stops services in the reverse of the given order, those that stand side by side at the same time; one that fails does
 * not keep the others from stopping. All share one grace: what has been used is gone for those that come after.
 */
export async function stopAll(services: readonly (Service | SideBySide)[], grace?: SharedGrace): Promise<void> {
  const failures: unknown[] = []
  const endMs = grace && grace.clock.now() + grace.graceMs
  for (const stage of [...services].reverse()) {
    const leftMs = grace && Math.max(0, (endMs ?? 0) - grace.clock.now())
    const stopping = membersOf(stage).reverse()
    await Promise.all(stopping.map((service) => service.stop(leftMs).catch((error: unknown) => failures.push(error))))
  }
  if (failures.length > 0) throw new AggregateError(failures, 'some services did not stop cleanly')
}

/** The services of a list with some of them side by side, in the order of starting. */
export function membersOf(services: Service | SideBySide | readonly (Service | SideBySide)[]): Service[] {
  return 'stop' in services ? [services] : services.flatMap((stage) => membersOf(stage))
}
