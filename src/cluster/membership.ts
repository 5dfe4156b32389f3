import type { Incarnation } from './types.js'

/** A node beats this often. */
export const BEAT_EVERY_MS = 1_000
/** A node looks at all rows this often. */
export const LOOK_EVERY_MS = 500
/** A node that shows the same beat at every look for this long is declared dead. */
export const DEAD_AFTER_MS = 5_000
/** A node acts this long after it sent its last successful beat. The margin of 1 s lets clocks differ in their rates. */
const ACT_FOR_MS = 4_000
/** If a look is delayed by more than this, the delay does not count: this process or PostgreSQL may have stood still. */
const LATE_LOOK_MS = 1_000

/** A moment by two clocks. */
export interface Moment {
  /** Never set, but stops while the machine is suspended. */
  readonly monotonicMs: number
  /** Continues while the machine is suspended, but may be set. */
  readonly wallMs: number
}

/**
 * Whether this node may act, by its own clocks alone: until 4 s after it *sent* its last successful beat. Other nodes
 * declare it dead at the earliest 5 s after they have seen that beat, and they cannot see a beat before it is sent.
 */
export class Tenure {
  #sent: Moment = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: Number.NEGATIVE_INFINITY }
  #isOver = false

  /** A beat has been stored. @param sent when the beat was sent, not when the reply came. */
  beaten(sent: Moment): void {
    if (sent.monotonicMs > this.#sent.monotonicMs) this.#sent = sent
  }

  /** This incarnation has been declared dead, or has left. */
  end(): void {
    this.#isOver = true
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether this node may act at a moment. */
  mayAct(monotonicMs: number, wallMs: number): boolean {
    if (this.#isOver) return false
    return monotonicMs - this.#sent.monotonicMs < ACT_FOR_MS && wallMs - this.#sent.wallMs < ACT_FOR_MS
  }
}

/** A node and a beat of it. */
export interface Beat {
  readonly incarnation: Incarnation
  readonly beat: number
}

/** A look that has succeeded, with times of this process's monotonic clock. */
export interface Look {
  readonly sentMs: number
  readonly returnedMs: number
  /** The beats of all other nodes that take part. */
  readonly beats: readonly Beat[]
}

/**
 * Finds nodes that no longer beat. It compares no clocks: a node is silent when this process has seen the same beat at
 * every look for 5 s of its own time.
 *
 * A failed look restarts these 5 s for all nodes, and the delay of a late or slow look does not count. So neither an
 * outage of PostgreSQL nor a pause of this process declares a node dead. Late looks do not restart the 5 s: otherwise a
 * cluster on busy machines, where every look is late, would never declare a node dead.
 */
export class DeathWatch {
  /** The last beat of each node and since when it has been the same. Delays that do not count move `sinceMs` forward. */
  readonly #seen = new Map<Incarnation, { readonly beat: number; sinceMs: number }>()
  #lastMs = Number.NEGATIVE_INFINITY

  /** A look has failed. */
  lookFailed(): void {
    this.#seen.clear()
  }

  /** Evaluates a look. Returns the silent nodes, each with its last beat. */
  examine({ sentMs, returnedMs, beats }: Look): readonly Beat[] {
    const waitedMs = sentMs - this.#lastMs
    if (waitedMs > LOOK_EVERY_MS + LATE_LOOK_MS) this.#leaveOut(waitedMs - LOOK_EVERY_MS)
    this.#lastMs = returnedMs
    for (const incarnation of this.#seen.keys()) {
      if (!beats.some((beat) => beat.incarnation === incarnation)) this.#seen.delete(incarnation)
    }
    return beats.filter((beat) => this.#isSilent(beat, sentMs, returnedMs))
  }

  #leaveOut(ms: number): void {
    for (const known of this.#seen.values()) known.sinceMs += ms
  }

  /** Whether a beat was the same for too long: from the return of the first look that saw it until this look was sent. */
  #isSilent({ incarnation, beat }: Beat, sentMs: number, returnedMs: number): boolean {
    const known = this.#seen.get(incarnation)
    if (known?.beat !== beat) {
      this.#seen.set(incarnation, { beat, sinceMs: returnedMs })
      return false
    }
    const silentMs = sentMs - known.sinceMs
    if (returnedMs - sentMs > LATE_LOOK_MS) known.sinceMs += returnedMs - sentMs - LOOK_EVERY_MS
    return silentMs >= DEAD_AFTER_MS
  }
}
