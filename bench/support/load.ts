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

/** The value below which this share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}
