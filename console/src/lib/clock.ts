/** One clock for all relative times on a page. It follows the clock of the server, because all times come from there. */

const TICK_MS = 5_000
/** Smaller differences between the clocks are ignored: the time in an answer has only whole seconds. */
const AGREE_WITHIN_MS = 30_000
const listeners = new Set<() => void>()
/** How far the clock of this computer is behind that of the server; negative if it is ahead. */
let behindMs = 0
let nowMs = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

/**
 * Notes the time of the server from an answer, because the clock of this computer may be wrong by hours.
 * @param date the header `Date` of the answer.
 * @param askedMs when the request was sent, by the clock of this computer. The server answered between then and now.
 */
export function noteServerTime(date: string | null, askedMs: number): void {
  const atMs = Date.parse(date ?? '')
  if (Number.isNaN(atMs)) return
  const [sinceAskedMs, sinceNowMs] = [atMs - askedMs, atMs - Date.now()]
  behindMs = sinceAskedMs < -AGREE_WITHIN_MS ? sinceAskedMs : sinceNowMs > AGREE_WITHIN_MS ? sinceNowMs : 0
}

/** A time of this computer on the clock of the server, Unix milliseconds. Default: the present. */
export const serverMs = (localMs = Date.now()): number => localMs + behindMs

function tick(): void {
  nowMs = serverMs()
  for (const each of listeners) each()
}

/** The present in Unix milliseconds, as it was at the last tick. */
export const clockMs = (): number => nowMs

/** Calls back on each tick. All times on a page share one timer, which stops when there are none. */
export function watchClock(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    // The clock had stopped, because no page showed a time.
    nowMs = serverMs()
    timer = setInterval(tick, TICK_MS)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
