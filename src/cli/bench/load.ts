/** The result of one workload: throughput and latencies. */
export interface Loaded {
  /** Operations a second, after the warm-up. */
  readonly perSecond: number
  /** All operations, also those of the warm-up. */
  readonly operations: number
  /** How long each operation after the warm-up took, milliseconds, sorted. */
  readonly latenciesMs: Float64Array
  /** Operations a second that the plan of the database allows. */
  readonly limitPerSecond?: number
}

/** A closed loop: each caller starts its next operation when the previous one has ended. */
export interface LoopOptions {
  readonly callers: number
  /** How long the loop is measured, milliseconds. */
  readonly measureMs: number
  /** How long the loop runs before it is measured, milliseconds. */
  readonly warmUpMs: number
  /** How many operations one call stands for. Default 1. */
  readonly perCall?: number
  /** Ends the loop before its time. */
  readonly stop: AbortSignal
}

/**
 * Runs a closed loop. The first operation that fails ends it.
 * @param operation gets the number of its caller.
 * @throws what the operation throws, or the reason of `stop`, after all callers have ended.
 */
export async function runLoop(options: LoopOptions, operation: (caller: number) => Promise<void>): Promise<Loaded> {
  const { callers, measureMs, warmUpMs, perCall = 1, stop } = options
  const begin = performance.now() + warmUpMs
  const end = begin + measureMs
  const latencies: number[] = []
  let calls = 0
  let hasFailed = false
  const loop = async (caller: number): Promise<void> => {
    for (let now = performance.now(); now < end && !hasFailed && !stop.aborted; calls++) {
      const startedAt = now
      await operation(caller)
      now = performance.now()
      if (startedAt >= begin && now <= end) latencies.push(now - startedAt)
    }
  }
  const fail = (error: unknown): never => {
    hasFailed = true
    throw error
  }
  await settled(Array.from({ length: callers }, (_, caller) => loop(caller).catch(fail)))
  stop.throwIfAborted()
  const perSecond = (latencies.length * perCall) / (measureMs / 1_000)
  return { perSecond, operations: calls * perCall, latenciesMs: Float64Array.from(latencies).sort() }
}

/** Waits for all of them, even if one fails: no operation may be in flight when the caller cleans up. */
async function settled(works: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(works)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** The value below which this share (0 to 1) of sorted values lie; NaN without values. */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}
