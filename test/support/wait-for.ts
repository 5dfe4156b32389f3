/** How long `waitFor` tries, and what it says when it gives up. */
export interface WaitOptions {
  /** Completes the sentence "gave up waiting for ...". */
  readonly what: string
  /** Default 60,000: long enough for a busy machine, and shorter than a test may take. */
  readonly deadlineMs?: number
  /** Time between two checks. Default: 10 at first, then longer, at most 100. */
  readonly everyMs?: number
}

/** The interval grows, because a check often costs a request or a search through all processes. */
const INTERVALS = { firstMs: 10, growth: 1.25, mostMs: 100 }

/**
 * Waits until `condition` answers something other than `undefined`, `null` or `false`, and returns that answer.
 * A condition that throws counts as "not yet"; its last error is the cause of the failure.
 */
export async function waitFor<Answer>(
  condition: () => Answer | Promise<Answer>,
  options: WaitOptions,
): Promise<Exclude<Answer, undefined | null | false>> {
  const deadlineMs = options.deadlineMs ?? 60_000
  const giveUpAt = performance.now() + deadlineMs
  let cause: unknown
  let intervalMs = options.everyMs ?? INTERVALS.firstMs
  do {
    try {
      const answer = await condition()
      if (answer !== undefined && answer !== null && answer !== false) {
        return answer as Exclude<Answer, undefined | null | false>
      }
    } catch (error) {
      cause = error
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
    if (options.everyMs === undefined) intervalMs = Math.min(intervalMs * INTERVALS.growth, INTERVALS.mostMs)
  } while (performance.now() < giveUpAt)
  const reason = cause === undefined ? '' : ` (${String(cause)})`
  throw new Error(`gave up waiting for ${options.what} after ${deadlineMs} ms${reason}`, { cause })
}
