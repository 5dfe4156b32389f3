import type { Clock, Timer } from '../../../base/index.js'
import { type Random, seeded } from '../../../base/testing/random.js'
import { Heap } from '../../dispatcher/collections.js'

/** Unix milliseconds at which every simulation begins: half a minute before schedules fire. */
export const STARTS_AT_MS = Date.UTC(2026, 0, 5, 12, 0, 45)

interface Event {
  at: number
  readonly order: number
  readonly run: () => void
  readonly process: Process | undefined
  isCancelled: boolean
}

/** Most events of one millisecond. More mean that a process wakes itself all the time. */
const MAX_STEPS = 2_000

const realImmediate = globalThis.setImmediate
const realNow = performance.now
const realNextTick = process.nextTick
const nextTurn = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve))
/**
 * Resolves after all pending microtasks. A turn of the event loop would cost more
 * than most events. Call it in a microtask.
 */
const nextTick = (): Promise<void> => new Promise(resolveNextTick)
const resolveNextTick = (resolve: () => void): void => realNextTick.call(process, resolve)

/**
 * Virtual time for the processes of several machines, simulated in one process. It runs one event after the other, each
 * with its immediate consequences: promises, `process.nextTick` and `setImmediate`. All randomness comes from one seed,
 * so the same seed gives the same run.
 */
export class Timeline {
  readonly random: Random
  /** Milliseconds since the start. */
  now = 0
  /** The process whose event runs. */
  current: Process | undefined
  /** Events that have run. */
  steps = 0
  /** The recorded events; `undefined` if they are not traced. */
  readonly trace: string[] | undefined
  readonly #events = new Heap<Event>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order))
  #order = 0
  /** Steps before the present millisecond. */
  #stepsThen = 0
  #immediates: (() => void)[] = []
  /** Whether `process.nextTick` was called. */
  #hasTicks = false
  #problem: string | undefined
  #forgiven: RegExp | undefined

  constructor(seed: number, isTraced = false) {
    this.random = seeded(seed * 2_654_435_761)
    this.trace = isTraced ? [] : undefined
  }

  /** The first broken invariant. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Reports a broken invariant. Only the first one counts. */
  fail(what: string): void {
    if (this.#forgiven?.test(what)) return
    this.#problem ??= `${what} (at ${this.now} ms)`
    this.note(`BROKEN: ${what}`)
  }

  /** Ignores broken invariants that match, from now on. */
  forgive(kind: RegExp): void {
    this.#forgiven = kind
  }

  /** Records an event for a reader. */
  note(what: string): void {
    this.trace?.push(`${String(this.now).padStart(6)} ms  ${what}`)
  }

  between(least: number, most: number): number {
    return least + this.random.below(most - least + 1)
  }

  /** Calls `run` at a time. For a process: later if it is paused then, and never if it is over. */
  at(at: number, run: () => void, process?: Process): Timer {
    const event: Event = { at: Math.max(at, this.now), order: ++this.#order, run, process, isCancelled: false }
    this.#events.push(event)
    return {
      cancel: () => {
        event.isCancelled = true
      },
    }
  }

  after(ms: number, run: () => void, process?: Process): Timer {
    return this.at(this.now + ms, run, process)
  }

  /** Runs events until the time, or until `isOver` after a step. */
  async run(untilMs: number, afterStep: () => void, isOver: () => boolean = () => false): Promise<void> {
    globalThis.setImmediate = this.#immediate as typeof setImmediate
    process.nextTick = this.#tick
    // Long work yields depending on this clock. With real time, the same seed would give another run on a busy machine.
    performance.now = () => this.now
    try {
      await nextTurn()
      while (this.#problem === undefined && !isOver()) {
        const next = this.#events.peek()
        if (!next || next.at > untilMs) break
        this.#events.pop()
        if (!this.#mayRun(next)) continue
        next.run()
        await this.#rest()
        while (this.#immediates.length > 0) {
          for (const run of this.#immediates.splice(0)) run()
          await this.#rest()
        }
        afterStep()
      }
      if (this.#problem === undefined && this.now < untilMs && !isOver()) this.now = untilMs
    } finally {
      globalThis.setImmediate = realImmediate
      process.nextTick = realNextTick
      performance.now = realNow
    }
  }

  /** Whether an event runs now: its process is neither over nor paused. If so, sets the time to that of the event. */
  #mayRun(event: Event): boolean {
    const { process } = event
    if (event.isCancelled || process?.isOver) return false
    if (process && event.at < process.pausedUntil) {
      event.at = process.pausedUntil
      this.#events.push(event)
      return false
    }
    if (event.at > this.now) this.#stepsThen = this.steps
    this.now = event.at
    this.current = process
    if (++this.steps - this.#stepsThen <= MAX_STEPS) return true
    this.fail(`${process?.name ?? 'nobody'} never rests`)
    return false
  }

  /** Resolves when no consequences are left except calls of `setImmediate`. */
  async #rest(): Promise<void> {
    await nextTick()
    while (this.#hasTicks) {
      this.#hasTicks = false
      // The pending ticks run before the first of these, and their consequences before the second.
      await nextTick()
      await nextTick()
    }
  }

  readonly #tick = (run: (...args: unknown[]) => void, ...args: unknown[]): void => {
    this.#hasTicks = true
    realNextTick.call(process, run, ...args)
  }

  readonly #immediate = (run: (...args: unknown[]) => void, ...args: unknown[]): unknown => {
    this.#immediates.push(() => run(...args))
    return undefined
  }
}

/** A process on a machine of its own: its clocks, its timers, and whether it is paused. */
export class Process {
  readonly name: string
  readonly #timeline: Timeline
  /** How far its clock is ahead. */
  offsetMs: number
  /** While the process is paused, none of its events run. */
  pausedUntil = 0
  /** Time during which its monotonic clock stood still. */
  suspendedMs = 0
  /** While its machine is suspended, its monotonic clock stands still. */
  #suspendedUntil = 0
  isOver = false
  /** Since when nothing has disturbed it: no pause, no slow or failed call, no jump of its clock. */
  calmSince = 0
  readonly clock: Clock

  constructor(timeline: Timeline, name: string, offsetMs: number) {
    this.#timeline = timeline
    this.name = name
    this.offsetMs = offsetMs
    this.calmSince = timeline.now
    this.clock = {
      now: () => this.wallMs,
      after: (delayMs, run) => timeline.at(timeline.now + Math.ceil(Math.max(0, delayMs)), run, this),
    }
  }

  get wallMs(): number {
    return STARTS_AT_MS + this.#timeline.now + this.offsetMs
  }

  readonly monotonicMs = (): number => this.#timeline.now - this.suspendedMs

  get isPaused(): boolean {
    return this.#timeline.now < this.pausedUntil
  }

  /** Whether it runs now. */
  get isRunning(): boolean {
    return !this.isOver && !this.isPaused
  }

  /** Notes a disturbance that lasts this long. */
  disturb(ms = 0): void {
    this.calmSince = Math.max(this.calmSince, this.#timeline.now + ms)
  }

  pause(ms: number, isSuspended: boolean): void {
    const { now } = this.#timeline
    const until = now + ms
    this.pausedUntil = Math.max(this.pausedUntil, until)
    if (isSuspended) {
      // If the machine is already suspended, this only prolongs its sleep.
      this.suspendedMs += Math.max(0, until - Math.max(now, this.#suspendedUntil))
      this.#suspendedUntil = Math.max(this.#suspendedUntil, until)
    }
    this.calmSince = Math.max(this.calmSince, this.pausedUntil)
  }
}
