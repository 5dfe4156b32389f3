import type { Clock } from './clock.js'

/**
 * A component that runs as long as the process: a listener, a poller, a supervisor. `start` is called once and resolves
 * when the service is ready. `stop` finishes work in flight and frees all resources; it may be called at any time, and
 * more than once.
 */
export interface Service {
  readonly name: string
  start(): Promise<void>
  /** @param graceMs time limit for work in flight. Default: the service's own. */
  stop(graceMs?: number): Promise<void>
}

/** Services that do not depend on each other, so they stop in parallel. */
export type ParallelServices = readonly Service[]

/** Time that all services together may take to stop. */
export interface SharedGrace {
  readonly clock: Clock
  readonly graceMs: number
}

/**
 * Stops services in reverse order, groups of parallel services at the same time. A failure does not keep the others from
 * stopping. All share one grace period: time that one service uses is not available to the next.
 */
export async function stopAll(services: readonly (Service | ParallelServices)[], grace?: SharedGrace): Promise<void> {
  const failures: unknown[] = []
  const endMs = grace && grace.clock.now() + grace.graceMs
  for (const stage of [...services].reverse()) {
    const leftMs = grace && Math.max(0, (endMs ?? 0) - grace.clock.now())
    const stopping = flattenServices(stage).reverse()
    await Promise.all(stopping.map((service) => service.stop(leftMs).catch((error: unknown) => failures.push(error))))
  }
  if (failures.length > 0) throw new AggregateError(failures, 'some services did not stop cleanly')
}

/** All services of a list, with parallel groups expanded, in the order of starting. */
export function flattenServices(
  services: Service | ParallelServices | readonly (Service | ParallelServices)[],
): Service[] {
  return 'stop' in services ? [services] : services.flatMap((stage) => flattenServices(stage))
}
