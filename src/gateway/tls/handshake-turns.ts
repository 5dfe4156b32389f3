import { isTurnSpent, scheduleSlice } from '../../base/index.js'

/** Handshakes that wait for a turn of the event loop, oldest first. */
const waiting: (() => void)[] = []

/**
 * Begins a TLS handshake now, or in a later turn of the event loop if this one is spent. A handshake takes half a millisecond,
 * and strangers may send the first bytes on thousands of connections at once.
 * @param begin must not throw.
 */
export function beginInTurn(begin: () => void): void {
  if (waiting.length === 0 && !isTurnSpent()) {
    begin()
    return
  }
  waiting.push(begin)
  if (waiting.length === 1) scheduleSlice(beginWaiting)
}

/** All handshakes share one slice at a time, so that they do not hold up other long work one by one. */
function beginWaiting(): void {
  waiting[0]?.()
  // Node reads the first bytes, and signs, in the next tick. Only then the time of a handshake is known.
  process.nextTick(() => {
    waiting.shift()
    if (waiting.length === 0) return
    if (isTurnSpent()) scheduleSlice(beginWaiting)
    else beginWaiting()
  })
}
