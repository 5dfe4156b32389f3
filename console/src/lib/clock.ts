/** The present, for everything on a page that shows how long ago something was. */

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

/** Calls back as time goes on. One timer for all times on a page, and none when there is no time on it. */
export function watchClock(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    // Nobody has looked at the clock since the last page with a time on it.
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
