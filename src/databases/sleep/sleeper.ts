/**
 * The state machine of one database between asleep and awake, and the decision which databases fall asleep.
 *
 * ```
 *              wake                     idle                        files settled, no request
 *   asleep ──────────▶ awake ────────────────────────▶ compacting ────────────────────────▶ falling-asleep
 *     ▲                 ▲ ▲                                 │                                     │    │
 *     │                 │ └────── request, not saved ───────┘                                     │    │
 *     │                 └──────────────────────────── wake ───────────────────────────────────────┘    │
 *     └──────────────────────────────────────── engines stopped ───────────────────────────────────────┘
 * ```
 *
 * - `asleep`: no process runs, and none is desired.
 * - `awake`: the engines run or are starting.
 * - `compacting`: still serves as `awake`; before its engines are stopped, its log is compacted, or its data saved if it
 *   has no log. If its data cannot be written, as on a full disk, a stop would lose data: the database stays awake, and is
 *   compacted again later.
 * - `falling-asleep`: its engines are being stopped and no client is connected to them. A request now wakes it: the fleet
 *   starts the engines again when they have stopped.
 *
 * Every transition is one function here.
 */

/** Work of Homeport during which a database must not sleep, in the words that users read. */
export type Task = 'creation' | 'change' | 'backup' | 'restore' | 'import'

/** The states; see the top of this file. */
export type SleepState = 'asleep' | 'awake' | 'compacting' | 'falling-asleep'

/** A database and its sleep state. */
export interface Sleeper {
  readonly databaseId: string
  readonly state: SleepState
  /** When it was woken or fell asleep last, Unix milliseconds. */
  readonly sinceMs: number
  /** When it was last in use in a way that its meter does not count: woken, kept awake or worked on. */
  readonly usedAtMs: number
  /** When its data could not be saved, Unix milliseconds; until it can be. */
  readonly unsavedAtMs?: number | undefined
  /** Active tasks, counted by kind. */
  readonly tasks: Readonly<Partial<Record<Task, number>>>
}

/** A database that sleeps. */
export function newSleeper(databaseId: string, nowMs: number): Sleeper {
  return { databaseId, state: 'asleep', sinceMs: nowMs, usedAtMs: nowMs, tasks: {} }
}

function expectState(sleeper: Sleeper, ...states: readonly SleepState[]): void {
  if (!states.includes(sleeper.state)) throw new Error(`database ${sleeper.databaseId} is ${sleeper.state}`)
}

/** Whether the engines are desired to run. */
export function isDesiredUp({ state }: Sleeper): boolean {
  return state === 'awake' || state === 'compacting'
}

/** `asleep` or `falling-asleep` -> `awake`. */
export function woken(sleeper: Sleeper, nowMs: number): Sleeper {
  expectState(sleeper, 'asleep', 'falling-asleep')
  return { ...sleeper, state: 'awake', sinceMs: nowMs, usedAtMs: nowMs }
}

/** A request or task needs it now: `compacting` -> `awake`. */
export function used(sleeper: Sleeper, nowMs: number): Sleeper {
  expectState(sleeper, 'awake', 'compacting')
  return { ...sleeper, state: 'awake', usedAtMs: nowMs }
}

/** `awake` -> `compacting`. */
export function compacting(sleeper: Sleeper): Sleeper {
  expectState(sleeper, 'awake')
  return { ...sleeper, state: 'compacting' }
}

/** Its data cannot be saved: `compacting` -> `awake`. */
export function unsaved(sleeper: Sleeper, nowMs: number): Sleeper {
  expectState(sleeper, 'compacting')
  return { ...sleeper, state: 'awake', unsavedAtMs: nowMs }
}

/** How long a database stays awake whose data could not be saved. */
const UNSAVED_MS = 60_000

/** Whether it is too early to try again to save its data. */
export function isKeptUnsaved({ unsavedAtMs }: Sleeper, nowMs: number): boolean {
  return unsavedAtMs !== undefined && unsavedAtMs <= nowMs && nowMs < unsavedAtMs + UNSAVED_MS
}

/** `awake` or `compacting` -> `falling-asleep`. */
export function fallingAsleep(sleeper: Sleeper): Sleeper {
  expectState(sleeper, 'awake', 'compacting')
  return { ...sleeper, state: 'falling-asleep', unsavedAtMs: undefined }
}

/** `falling-asleep` -> `asleep`. */
export function asleep(sleeper: Sleeper, nowMs: number): Sleeper {
  expectState(sleeper, 'falling-asleep')
  return { ...sleeper, state: 'asleep', sinceMs: nowMs }
}

/** Any state: a task begins (1) or ends (-1). */
export function withTask(sleeper: Sleeper, task: Task, by: 1 | -1, nowMs: number): Sleeper {
  const count = (sleeper.tasks[task] ?? 0) + by
  const { [task]: _, ...others } = sleeper.tasks
  return { ...sleeper, usedAtMs: nowMs, tasks: count > 0 ? { ...others, [task]: count } : others }
}

/** Whether a task is active. */
export function hasTasks({ tasks }: Sleeper): boolean {
  return Object.keys(tasks).length > 0
}

/** A database that nothing keeps awake at the moment. */
export interface SleepCandidate {
  readonly databaseId: string
  /** When it was last used, Unix milliseconds. */
  readonly usedAtMs: number
  /** How long it may be idle. */
  readonly idleMs: number
}

/** Which databases fall asleep now, and when to check again. */
export interface SleepPlan {
  /** The databases that fall asleep now, the longest idle first. */
  readonly due: readonly SleepCandidate[]
  /** When the next one is due unless it is used before, Unix milliseconds; undefined when there is none. */
  readonly nextAtMs: number | undefined
}

/**
 * While more databases are awake than allowed, those idle for at least this time fall asleep early, the longest idle
 * first. Long enough that databases in use are not stopped and started alternately.
 */
export const EARLY_IDLE_MS = 5_000

/**
 * Decides for all databases that nothing keeps awake.
 * @param excess how many more databases are awake than allowed.
 */
export function sleepPlanOf(candidates: readonly SleepCandidate[], excess: number, nowMs: number): SleepPlan {
  const byUse = [...candidates].sort((one, other) => one.usedAtMs - other.usedAtMs)
  const timed = byUse.map((candidate, place) => {
    const allowedMs = place < excess ? Math.min(candidate.idleMs, EARLY_IDLE_MS) : candidate.idleMs
    return { candidate, dueAtMs: candidate.usedAtMs + allowedMs }
  })
  const later = timed.filter(({ dueAtMs }) => dueAtMs > nowMs).map(({ dueAtMs }) => dueAtMs)
  return {
    due: timed.filter(({ dueAtMs }) => dueAtMs <= nowMs).map(({ candidate }) => candidate),
    nextAtMs: later.length > 0 ? Math.min(...later) : undefined,
  }
}
