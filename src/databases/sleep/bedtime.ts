/** Decides which databases go to sleep, and when to look again. Pure. */

/** A database that nothing holds awake at the moment. */
export interface Candidate {
  readonly databaseId: string
  /** When it was last used, Unix milliseconds. */
  readonly usedAtMs: number
  /** How long it may be idle. */
  readonly idleMs: number
}

/** What is to be done. */
export interface Bedtime {
  /** The databases whose time has come, those idle for the longest first. */
  readonly due: readonly Candidate[]
  /** When the next one is due if nobody uses it, Unix milliseconds; undefined when there is none. */
  readonly nextAtMs: number | undefined
}

/**
 * When more databases are awake than there should be, those that were not used for this long make room, those idle for
 * the longest first. Long enough that databases in use are not stopped and started in turns.
 */
export const EARLY_IDLE_MS = 5_000

/**
 * Judges all databases that nothing holds awake.
 * @param tooMany how many more databases are awake than there should be.
 */
export function bedtimeOf(candidates: readonly Candidate[], tooMany: number, nowMs: number): Bedtime {
  const byUse = [...candidates].sort((one, other) => one.usedAtMs - other.usedAtMs)
  const timed = byUse.map((candidate, place) => {
    const patienceMs = place < tooMany ? Math.min(candidate.idleMs, EARLY_IDLE_MS) : candidate.idleMs
    return { candidate, dueAtMs: candidate.usedAtMs + patienceMs }
  })
  const later = timed.filter(({ dueAtMs }) => dueAtMs > nowMs).map(({ dueAtMs }) => dueAtMs)
  return {
    due: timed.filter(({ dueAtMs }) => dueAtMs <= nowMs).map(({ candidate }) => candidate),
    nextAtMs: later.length > 0 ? Math.min(...later) : undefined,
  }
}
