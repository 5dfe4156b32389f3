/**
 * Something that lives as long as the process: a listener, a poller, a supervisor.
 * `start` resolves when it serves and may be called once; `stop` finishes what is in flight, frees everything,
 * and may be called at any time and more than once.
 */
export interface Service {
  readonly name: string
  start(): Promise<void>
  stop(): Promise<void>
}

/** Stops services in the reverse of the given order; one that fails does not keep the others from stopping. */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const failures: unknown[] = []
  for (const service of [...services].reverse()) {
    await service.stop().catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw new AggregateError(failures, 'some services did not stop cleanly')
}
