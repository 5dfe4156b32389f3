/** The result of a load. */
export interface LoadResult {
  readonly elapsedMs: number
  readonly latenciesMs: readonly number[]
}

/** Calls `one` `count` times, some of them at a time. */
export async function runLoad(times: number, atATime: number, one: () => Promise<void>): Promise<LoadResult> {
  const latenciesMs: number[] = []
  let left = times
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const started = performance.now()
      await one()
      latenciesMs.push(performance.now() - started)
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: atATime }, worker))
  return { elapsedMs: performance.now() - started, latenciesMs }
}
