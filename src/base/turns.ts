/** So much may be done at a stretch, by all that looks together; milliseconds. */
const LONGEST_STRETCH_MS = 10

/** Slices of long work that wait, first come, first served. */
let waiting: (() => void)[] = []
/** The first of `waiting` that still waits. */
let head = 0
let isPumping = false
/** Since when there has been work in the present turn of the event loop, as far as anybody has looked. */
let beganAt: number | undefined

/**
 * Whether so much was done in this turn of the event loop that whoever has more to do should wait for another one
 * (`inTurn`). All who ask share one stretch of time: a hundred clients that keep the process busy hold others up no
 * longer than one does.
 */
export function isTurnSpent(): boolean {
  const now = performance.now()
  if (beganAt !== undefined) return now - beganAt >= LONGEST_STRETCH_MS
  beganAt = now
  setImmediate(renew)
  return false
}

/**
 * Calls `slice` in a later turn of the event loop. Of all the long work in the process one slice is done in a turn,
 * whoever's it is, and between two of them everything that has arrived is served: so nobody waits for longer than a
 * slice takes, however many do long work at a time.
 */
export function inTurn(slice: () => void): void {
  waiting.push(slice)
  if (isPumping) return
  isPumping = true
  setImmediate(pump)
}

/** Resolves in a later turn of the event loop, as `inTurn` calls back. */
export function nextTurn(): Promise<void> {
  return new Promise(inTurn)
}

function pump(): void {
  const slice = waiting[head++]
  if (head === waiting.length) {
    waiting = []
    head = 0
  }
  isPumping = waiting.length > 0
  if (isPumping) setImmediate(pump)
  renew()
  slice?.()
}

function renew(): void {
  beganAt = undefined
}
