/** One clock for all relative times on a page. */

const TICK_MS = 5_000
const listeners = new Set<() => void>()
let nowMs = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function tick(): void {
  nowMs = Date.now()
  for (const each of listeners) each()
}

/** The present in Unix milliseconds, as it was at the last tick. */
export const clockMs = (): number => nowMs

/** Calls back on each tick. All times on a page share one timer, which stops when there are none. */
export function watchClock(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    // The clock stopped with the last page that showed a time.
    nowMs = Date.now()
    timer = setInterval(tick, TICK_MS)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
