/**
 * One database between sleep and waking.
 *
 * ```
 *              wake                     nobody uses it              log tidied, nobody came
 *   asleep ──────────▶ awake ──────────────────────────▶ drowsy ──────────────────────────▶ falling-asleep
 *     ▲                 ▲ ▲                                 │                                     │    │
 *     │                 │ └───────── somebody came ─────────┘                                     │    │
 *     │                 └──────────────────────────── wake ───────────────────────────────────────┘    │
 *     └──────────────────────────────────────── engines ended ─────────────────────────────────────────┘
 * ```
 *
 * - `asleep`: no process, and none is desired.
 * - `awake`: engines are desired to run; they run or are on their way up.
 * - `compacting`: as awake, and serves; its log is being rewritten before its engines are stopped.
 * - `falling-asleep`: its engines are being stopped and no client is connected to them. A request that comes now wakes
 *   it: the fleet starts them again when they have ended.
 *
 * Every arrow is one function here.
 */

/** Work of ours during which a database must not sleep, in the words that people read. */
export type Task = 'creation' | 'change' | 'backup' | 'restore' | 'import'

/** See the top of this file. */
export type Wakefulness = 'asleep' | 'awake' | 'compacting' | 'falling-asleep'

/** A database and how awake it is. */
export interface Sleeper {
  readonly databaseId: string
  readonly state: Wakefulness
  /** When it was woken or fell asleep last, Unix milliseconds. */
  readonly sinceMs: number
  /** When it was last seen in use in a way that no meter tells: woken, held or worked on. */
  readonly usedAtMs: number
  /** Tasks under way, by kind. */
  readonly tasks: Readonly<Partial<Record<Task, number>>>
}

/** A database that sleeps. */
export function newSleeper(databaseId: string, nowMs: number): Sleeper {
  return { databaseId, state: 'asleep', sinceMs: nowMs, usedAtMs: nowMs, tasks: {} }
}

function expectState(sleeper: Sleeper, ...states: readonly Wakefulness[]): void {
  if (!states.includes(sleeper.state)) throw new Error(`database ${sleeper.databaseId} is ${sleeper.state}`)
}

/** Whether engines are desired to run. */
export function isUp({ state }: Sleeper): boolean {
  return state === 'awake' || state === 'compacting'
}

/** `asleep` or `falling-asleep` -> `awake`. */
export function woken(sleeper: Sleeper, nowMs: number): Sleeper {
  expectState(sleeper, 'asleep', 'falling-asleep')
  return { ...sleeper, state: 'awake', sinceMs: nowMs, usedAtMs: nowMs }
}

/** Any state that is up: somebody needs it now. `compacting` -> `awake`. */
export function used(sleeper: Sleeper, nowMs: number): Sleeper {
  expectState(sleeper, 'awake', 'compacting')
  return { ...sleeper, state: 'awake', usedAtMs: nowMs }
}

/** `awake` -> `compacting`. */
export function compacting(sleeper: Sleeper): Sleeper {
  expectState(sleeper, 'awake')
  return { ...sleeper, state: 'compacting' }
}

/** `awake` or `compacting` -> `falling-asleep`. */
export function fallingAsleep(sleeper: Sleeper): Sleeper {
  expectState(sleeper, 'awake', 'compacting')
  return { ...sleeper, state: 'falling-asleep' }
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

/** Whether work of ours is under way. */
export function isWorkedOn({ tasks }: Sleeper): boolean {
  return Object.keys(tasks).length > 0
}

/** A database that nothing holds awake at the moment. */
export interface SleepCandidate {
  readonly databaseId: string
  /** When it was last used, Unix milliseconds. */
  readonly usedAtMs: number
  /** How long it may be idle. */
  readonly idleMs: number
}

/** What is to be done. */
export interface SleepPlan {
  /** The databases whose time has come, those idle for the longest first. */
  readonly due: readonly SleepCandidate[]
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
 * @param excess how many more databases are awake than there should be.
 */
export function sleepPlanOf(candidates: readonly SleepCandidate[], excess: number, nowMs: number): SleepPlan {
  const byUse = [...candidates].sort((one, other) => one.usedAtMs - other.usedAtMs)
  const timed = byUse.map((candidate, place) => {
    const patienceMs = place < excess ? Math.min(candidate.idleMs, EARLY_IDLE_MS) : candidate.idleMs
    return { candidate, dueAtMs: candidate.usedAtMs + patienceMs }
  })
  const later = timed.filter(({ dueAtMs }) => dueAtMs > nowMs).map(({ dueAtMs }) => dueAtMs)
  return {
    due: timed.filter(({ dueAtMs }) => dueAtMs <= nowMs).map(({ candidate }) => candidate),
    nextAtMs: later.length > 0 ? Math.min(...later) : undefined,
  }
}
