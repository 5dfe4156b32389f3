/** What a load came to. */
export interface LoadResult {
  readonly elapsedMs: number
  readonly latenciesMs: readonly number[]
}

/** Does `one` so many times, so many of them at a time. */
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
