import type { Clock } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { encodeCommand, encodeTextCommand } from '../resp/encode.js'
import { type AskEngine, textReply } from './engine-questions.js'

/** Limits of scripts; each may be infinite. */
export interface ScriptLimits {
  /** Longest run of one script. */
  readonly timeoutMs: number
  /** Time of all scripts together in a minute (UTC). */
  readonly msPerMinute: number
  /** Size of the data set and of the script interpreter together. */
  readonly maxDataBytes: number
}

/** The collaborators of a watch. */
export interface ScriptWatchOptions {
  readonly clock: Clock
  /** Monotonic time, milliseconds. The system clock will not do: setting it could end an engine. */
  readonly elapsedMs: () => number
  /** Asks on a shared lane. */
  readonly ask: AskEngine
  /**
   * Sends commands on a new connection, which a running script does not block. Resolves to the text of the replies, empty
   * when there are none.
   */
  readonly interrupt: (commands: string, count: number) => Promise<string>
  /** Whether the engine runs a script, judged by its pending replies. */
  readonly runsScript: () => 'surely' | 'perhaps' | 'no'
  /** Ends the engine, which starts again without what the running script has written. @returns whether it was ended */
  readonly restartEngine: () => boolean
}

const MINUTE_MS = 60_000
const MAX_UNASKED_MS = 100
const STATS = [encodeCommand(['INFO', 'commandstats']), encodeCommand(['INFO', 'memory'])] as const
const KILL = encodeTextCommand(['SCRIPT', 'KILL']) + encodeTextCommand(['FUNCTION', 'KILL'])
const FLUSH = encodeTextCommand(['SCRIPT', 'FLUSH', 'SYNC'])
const SCRIPT_TIME = /^cmdstat_(?:eval|evalsha|eval_ro|evalsha_ro|fcall|fcall_ro):calls=\d+,usec=(\d+)/gm

const DATA_BYTES = /^used_memory:(\d+)/m
const INTERPRETER_BYTES = /^used_memory_vm_eval:(\d+)/m

/** A script that still runs this long after the engine was asked to end it counts as unendable. */
const MAX_UNENDED_MS = 750
/** The same time for an engine that does not answer and may be busy with something other than a script. */
const MAX_DOUBTFUL_MS = 5_000
/** Longest silence of an engine, however many scripts are queued. */
const MAX_SILENCE_MS = 10_000
/** Replies that are lost within this time after an engine was ended get the error that names the script. */
const BLAMED_MS = 5_000
/** Least interpreter memory for a flush, bytes. A flush is costly: after it, every client has to send its scripts again. */
const MIN_FLUSHED_BYTES = 2 ** 25

/**
 * A script that blocks the engine.
 *
 * - `unended`: the engine was asked to end the script and answered, but no script has been answered since.
 * - `silent`: the engine does not even answer. A script may be in a call that does not return, such as a search for a
 *   pattern, during which the engine serves nothing else.
 */
interface Hold {
  readonly kind: 'unended' | 'silent'
  readonly sinceMs: number
  /** Longest time until the engine is ended. */
  readonly mostMs: number
}

/**
 * Limits the time and memory of scripts in the engine of one database.
 *
 * A script that is not answered in time is ended by SCRIPT KILL. The engine only reads that command once the running script
 * has used its `lua-time-limit`, which the fleet sets to the limit of the plan. So the engine measures the time, and no
 * script pays for another that ran before it. SCRIPT KILL cannot end three kinds of scripts: one that has written, one that
 * catches the error, and one in a call that does not return. They get at least 750 ms; then their engine is ended. That
 * loses only what the script has written: an engine logs a script when the script has ended, and all earlier commands are
 * in the log.
 *
 * The time of all scripts is the engine's own count (INFO commandstats). The watch asks for it after a script's reply, at
 * most ten times a second. When the credits of a minute are used up, scripts are refused until the next minute. The
 * interpreter's memory counts with the data; when both together are too large, the watch resets the interpreter.
 */
export class ScriptWatch {
  limits: ScriptLimits
  readonly #options: ScriptWatchOptions
  /** When each script in flight was sent, in order. */
  readonly #inFlight = new Set<{ readonly sentAtMs: number }>()
  #timerIsSet = false
  #hold: Hold | undefined
  /** When the engine was asked to end a script, until it answers. */
  #interruptedAtMs: number | undefined
  #endedEngineAtMs = Number.NEGATIVE_INFINITY
  #askedAtMs = 0
  #asking = false
  /** The engine's count, microseconds; undefined before the first answer. */
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

  /** Whether the engine was just ended because of a script. */
  get hasJustEndedEngine(): boolean {
    return this.#options.elapsedMs() - this.#endedEngineAtMs < BLAMED_MS
  }

  /** Records that a script is being sent. @returns a function to call when it is answered */
  begin(): () => void {
    const script = { sentAtMs: this.#options.elapsedMs() }
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
    const { clock, elapsedMs } = this.#options
    const leftMs = oldest.sentAtMs + this.limits.timeoutMs - elapsedMs()
    // At least a quarter of the limit, also between attempts to end a script.
    clock.after(Math.max(leftMs, this.limits.timeoutMs / 4), () => this.#onTimer())
  }

  #onTimer(): void {
    this.#timerIsSet = false
    const [oldest] = this.#inFlight
    if (oldest && this.#options.elapsedMs() - oldest.sentAtMs >= this.limits.timeoutMs) this.#onOverdue(oldest)
    this.#setTimer()
  }

  #onOverdue(oldest: { readonly sentAtMs: number }): void {
    if (this.#interruptedAtMs === undefined) this.#interrupt(oldest).catch(() => this.#onUnreachable())
    else this.#noteSilence(this.#interruptedAtMs)
    const nowMs = this.#options.elapsedMs()
    if (this.#hold && nowMs - this.#hold.sinceMs >= this.#hold.mostMs) this.#restartEngine(nowMs - oldest.sentAtMs)
  }

  /** Called when the engine cannot be reached. The next timer tries again while the script runs. */
  #onUnreachable(): void {
    this.#interruptedAtMs = undefined
  }

  async #interrupt(overdue: { readonly sentAtMs: number }): Promise<void> {
    const { elapsedMs, interrupt } = this.#options
    this.#interruptedAtMs = elapsedMs()
    const replies = await interrupt(KILL, 2)
    this.#interruptedAtMs = undefined
    if (!this.#inFlight.has(overdue)) return
    const hasScript = replies.includes('UNKILLABLE') || replies.includes('+OK')
    if (!hasScript) this.#hold = undefined
    else if (this.#hold?.kind !== 'unended')
      this.#hold = { kind: 'unended', sinceMs: elapsedMs(), mostMs: MAX_UNENDED_MS }
  }

  /**
   * Called while the engine does not answer. Scripts of one connection run one after the other, and the engine serves
   * nothing else in between, so a queue of scripts may keep it silent for longer. A starting engine is silent, too.
   */
  #noteSilence(sinceMs: number): void {
    const runsScript = this.#options.runsScript()
    if (runsScript === 'no') this.#hold = undefined
    if (runsScript === 'no' || this.#hold?.kind === 'silent') return
    const othersMs = (this.#inFlight.size - 1) * this.limits.timeoutMs
    const leastMs = runsScript === 'surely' ? MAX_UNENDED_MS : MAX_DOUBTFUL_MS
    const mostMs = Math.min(Math.max(leastMs, MAX_UNENDED_MS + othersMs), MAX_SILENCE_MS)
    this.#hold = { kind: 'silent', sinceMs, mostMs }
  }

  /** Ends the engine. A restarted engine counts from 0, so this method adds the time of the script itself. */
  #restartEngine(tookMs: number): void {
    const nowMs = this.#options.elapsedMs()
    this.#hold = undefined
    if (this.#interruptedAtMs !== undefined) this.#interruptedAtMs = nowMs
    if (!this.#options.restartEngine()) return
    this.#endedEngineAtMs = nowMs
    this.#turn()
    this.#usedUs += 1000 * tookMs
  }

  #askStats(): void {
    const { elapsedMs, ask } = this.#options
    const nowMs = elapsedMs()
    const { msPerMinute, maxDataBytes } = this.limits
    const areBounded = msPerMinute < Number.POSITIVE_INFINITY || maxDataBytes < Number.POSITIVE_INFINITY
    if (!areBounded || this.#asking) return
    if (this.#engineUs !== undefined && nowMs - this.#askedAtMs < MAX_UNASKED_MS) return
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
    // A restarted engine counts from 0.
    this.#usedUs += engineUs >= last ? engineUs - last : engineUs
    const ofScripts = Number(INTERPRETER_BYTES.exec(memory)?.[1] ?? 0)
    const isTooMuch = Number(DATA_BYTES.exec(memory)?.[1] ?? 0) + ofScripts > this.limits.maxDataBytes
    if (isTooMuch && ofScripts >= MIN_FLUSHED_BYTES) void this.#options.interrupt(FLUSH, 1)
  }

  #turn(): void {
    const minute = Math.floor(this.#options.clock.now() / MINUTE_MS)
    if (minute === this.#minute) return
    this.#minute = minute
    this.#usedUs = 0
  }
}
