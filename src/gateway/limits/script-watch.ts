import type { Clock } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { encodeCommand, encodeTextCommand } from '../resp/encode.js'
import { type AskEngine, textReply } from './engine-questions.js'

/** Bounds of what scripts may take; each may be infinite. */
export interface ScriptLimits {
  /** Longest run of one script. */
  readonly timeoutMs: number
  /** Time of all scripts together in a minute (UTC). */
  readonly msPerMinute: number
  /** Size of the data set, with what scripts keep for themselves. */
  readonly maxDataBytes: number
}

/** What a watch asks of its surroundings. */
export interface ScriptWatchOptions {
  readonly clock: Clock
  /** Asks on a shared lane. */
  readonly ask: AskEngine
  /**
   * Sends commands on a connection of its own, which a running script does not hold up. Resolves to the text of the
   * replies, which is empty where there are none.
   */
  readonly interrupt: (commands: string, count: number) => Promise<string>
  /** Whether the engine is in a script, as far as that can be told from what it owes. */
  readonly hold: () => 'surely' | 'perhaps' | 'no'
  /**
   * Ends the engine, which is started again without what the running script has written. @returns whether it was ended
   */
  readonly breakOff: () => boolean
}

const MINUTE_MS = 60_000
const LONGEST_UNASKED_MS = 100
const STATS = [encodeCommand(['INFO', 'commandstats']), encodeCommand(['INFO', 'memory'])] as const
const KILL = encodeTextCommand(['SCRIPT', 'KILL']) + encodeTextCommand(['FUNCTION', 'KILL'])
const FLUSH = encodeTextCommand(['SCRIPT', 'FLUSH', 'SYNC'])
const SCRIPT_TIME = /^cmdstat_(?:eval|evalsha|eval_ro|evalsha_ro|fcall|fcall_ro):calls=\d+,usec=(\d+)/gm

const DATA_BYTES = /^used_memory:(\d+)/m
const INTERPRETER_BYTES = /^used_memory_vm_eval:(\d+)/m

/** A script that goes on for so long after it was told to end holds the engine for good. */
const LONGEST_UNENDED_MS = 750
/** The same where the engine says nothing, and may be at something else than a script. */
const LONGEST_DOUBTFUL_MS = 5_000
/** However many scripts wait behind each other, an engine may be silent for so long. */
const LONGEST_SILENCE_MS = 10_000
/** Those whose replies are lost with an engine that was ended learn of it within this time. */
const TOLD_WITHIN_MS = 5_000
/** Less than this is not worth making every client send its scripts again, bytes. */
const LEAST_FLUSHED_BYTES = 2 ** 25

/**
 * Since when the engine does not come back from a script.
 *
 * - `unended`: it was told to end the script, and says so or that it cannot, but no script has been answered since.
 * - `silent`: it does not even take that command. A script may be in a call that takes forever, such as a search for a
 *   pattern, where the engine looks at nothing else.
 */
interface Hold {
  readonly kind: 'unended' | 'silent'
  readonly sinceMs: number
  /** How long it may last. */
  readonly mostMs: number
}

/**
 * What scripts take of the engine of one database: time and memory.
 *
 * A script that is not answered in time is ended by SCRIPT KILL. The engine hears that only when the script that runs
 * has taken its `lua-time-limit`, which the fleet sets to the limit of the plans: so the engine is the judge of the time,
 * and one script never pays for another that ran before it. Three kinds of scripts cannot be ended so: one that has
 * written, one that catches the error, and one that is in a call that does not return. They get the better part of a
 * second; then their engine is ended. That loses what the script has written and nothing else, because a script is logged
 * when it has ended, and everything else before it was answered.
 *
 * The time of all scripts is the engine's own count (INFO commandstats), asked for behind a script's reply, at most ten
 * times a second. Above the credits of a minute scripts are refused until the next one. What they leave in the memory of
 * the interpreter counts with the data; where that is too much together, the interpreter is made anew.
 */
export class ScriptWatch {
  limits: ScriptLimits
  readonly #options: ScriptWatchOptions
  /** When each script in flight was sent, in order. */
  readonly #inFlight = new Set<{ readonly sentAtMs: number }>()
  #timerIsSet = false
  #hold: Hold | undefined
  /** Since when the engine has been asked to end a script and has not answered. */
  #interruptedAtMs: number | undefined
  #endedEngineAtMs = Number.NEGATIVE_INFINITY
  #askedAtMs = 0
  #asking = false
  /** The engine's count, microseconds; undefined before it was asked. */
  #engineUs: number | undefined
  #minute = 0
  #usedUs = 0

  constructor(limits: ScriptLimits, options: ScriptWatchOptions) {
    this.limits = limits
    this.#options = options
  }

  /** Script time of this minute, milliseconds. */
  get usedMs(): number {
    this.#turn()
    return Math.round(this.#usedUs / 1000)
  }

  /** Whether the credits of this minute are used up. */
  get isSpent(): boolean {
    return this.limits.msPerMinute < Number.POSITIVE_INFINITY && this.usedMs >= this.limits.msPerMinute
  }

  /** Whether the engine was ended a moment ago because of a script. */
  get hasJustEndedEngine(): boolean {
    return this.#options.clock.now() - this.#endedEngineAtMs < TOLD_WITHIN_MS
  }

  /** A script is being sent. Call what is returned when it is answered. */
  begin(): () => void {
    const script = { sentAtMs: this.#options.clock.now() }
    this.#inFlight.add(script)
    this.#setTimer()
    if (this.#engineUs === undefined) this.#askStats()
    return () => {
      this.#inFlight.delete(script)
      this.#hold = undefined
      this.#askStats()
    }
  }

  #setTimer(): void {
    const [oldest] = this.#inFlight
    if (!oldest || this.#timerIsSet || this.limits.timeoutMs === Number.POSITIVE_INFINITY) return
    this.#timerIsSet = true
    const { clock } = this.#options
    const leftMs = oldest.sentAtMs + this.limits.timeoutMs - clock.now()
    // At least a part of the limit, also for a script that cannot be ended and is tried again.
    clock.after(Math.max(leftMs, this.limits.timeoutMs / 4), () => this.#onTimer())
  }

  #onTimer(): void {
    this.#timerIsSet = false
    const [oldest] = this.#inFlight
    if (oldest && this.#options.clock.now() - oldest.sentAtMs >= this.limits.timeoutMs) this.#onOverdue(oldest)
    this.#setTimer()
  }

  #onOverdue(oldest: { readonly sentAtMs: number }): void {
    if (this.#interruptedAtMs === undefined) this.#interrupt(oldest).catch(() => this.#onUnreachable())
    else this.#noteSilence(this.#interruptedAtMs)
    const nowMs = this.#options.clock.now()
    if (this.#hold && nowMs - this.#hold.sinceMs >= this.#hold.mostMs) this.#breakOff(nowMs - oldest.sentAtMs)
  }

  /** The engine cannot be reached; while the script runs, the next turn tries again. */
  #onUnreachable(): void {
    this.#interruptedAtMs = undefined
  }

  async #interrupt(overdue: { readonly sentAtMs: number }): Promise<void> {
    const { clock, interrupt } = this.#options
    this.#interruptedAtMs = clock.now()
    const replies = await interrupt(KILL, 2)
    this.#interruptedAtMs = undefined
    if (!this.#inFlight.has(overdue)) return
    const hasScript = replies.includes('UNKILLABLE') || replies.includes('+OK')
    if (!hasScript) this.#hold = undefined
    else if (this.#hold?.kind !== 'unended')
      this.#hold = { kind: 'unended', sinceMs: clock.now(), mostMs: LONGEST_UNENDED_MS }
  }

  /**
   * The engine does not take a command. Scripts of one connection run one after the other without a look at anything
   * else, so with many of them in flight that may last longer, and an engine that does not run yet says nothing either.
   */
  #noteSilence(sinceMs: number): void {
    const hold = this.#options.hold()
    if (hold === 'no') this.#hold = undefined
    if (hold === 'no' || this.#hold?.kind === 'silent') return
    const othersMs = (this.#inFlight.size - 1) * this.limits.timeoutMs
    const leastMs = hold === 'surely' ? LONGEST_UNENDED_MS : LONGEST_DOUBTFUL_MS
    const mostMs = Math.min(Math.max(leastMs, LONGEST_UNENDED_MS + othersMs), LONGEST_SILENCE_MS)
    this.#hold = { kind: 'silent', sinceMs, mostMs }
  }

  /** An engine that is started again counts from 0, so what the script has taken is counted here. */
  #breakOff(tookMs: number): void {
    const nowMs = this.#options.clock.now()
    this.#hold = undefined
    if (this.#interruptedAtMs !== undefined) this.#interruptedAtMs = nowMs
    if (!this.#options.breakOff()) return
    this.#endedEngineAtMs = nowMs
    this.#turn()
    this.#usedUs += 1000 * tookMs
  }

  #askStats(): void {
    const { clock, ask } = this.#options
    const nowMs = clock.now()
    const { msPerMinute, maxDataBytes } = this.limits
    const areBounded = msPerMinute < Number.POSITIVE_INFINITY || maxDataBytes < Number.POSITIVE_INFINITY
    if (!areBounded || this.#asking) return
    if (this.#engineUs !== undefined && nowMs - this.#askedAtMs < LONGEST_UNASKED_MS) return
    this.#asking = true
    this.#askedAtMs = nowMs
    Promise.all(STATS.map((question) => ask(question))).then(
      ([times, memory]) => this.#account(times ? textReply(times) : '', memory ? textReply(memory) : ''),
      (_lost: HomeportError) => {
        this.#asking = false
      },
    )
  }

  #account(times: string, memory: string): void {
    this.#asking = false
    let engineUs = 0
    for (const [, us] of times.matchAll(SCRIPT_TIME)) engineUs += Number(us)
    const last = this.#engineUs ?? engineUs
    this.#engineUs = engineUs
    this.#turn()
    // An engine that was started again counts from 0.
    this.#usedUs += engineUs >= last ? engineUs - last : engineUs
    const ofScripts = Number(INTERPRETER_BYTES.exec(memory)?.[1] ?? 0)
    const isTooMuch = Number(DATA_BYTES.exec(memory)?.[1] ?? 0) + ofScripts > this.limits.maxDataBytes
    if (isTooMuch && ofScripts >= LEAST_FLUSHED_BYTES) void this.#options.interrupt(FLUSH, 1)
  }

  #turn(): void {
    const minute = Math.floor(this.#options.clock.now() / MINUTE_MS)
    if (minute === this.#minute) return
    this.#minute = minute
    this.#usedUs = 0
  }
}
