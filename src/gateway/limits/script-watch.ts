import type { Clock } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors.js'
import { encodeCommand, encodeTextCommand } from '../resp/encode.js'
import { type AskEngine, textReply } from './engine-questions.js'

/** Bounds of what scripts may take; either may be infinite. */
export interface ScriptLimits {
  /** Longest run of one script. */
  readonly timeoutMs: number
  /** Time of all scripts together in a minute (UTC). */
  readonly msPerMinute: number
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
  /** Ends the engine, which is started again without what the running script has written. */
  readonly breakOff: () => void
}

const MINUTE_MS = 60_000
const LONGEST_UNASKED_MS = 100
const COMMAND_STATS = encodeCommand(['INFO', 'commandstats'])
/** A script that has written may run for so long before its engine is ended. */
const LONGEST_UNENDABLE_MS = 30_000
const KILL = encodeTextCommand(['SCRIPT', 'KILL']) + encodeTextCommand(['FUNCTION', 'KILL'])
const SCRIPT_TIME = /^cmdstat_(?:eval|evalsha|eval_ro|evalsha_ro|fcall|fcall_ro):calls=\d+,usec=(\d+)/gm

/**
 * The time that scripts take on the engine of one database.
 *
 * A script that is not answered in time is ended by SCRIPT KILL. The engine hears that only when the script that runs
 * has taken its `lua-time-limit`, which the fleet sets to the limit of the plans: so the engine is the judge of the time,
 * and one script never pays for another that ran before it. A script that has written cannot be ended so; it runs on.
 * After a while its engine is ended: that loses what the script has written and nothing else, because a script is logged
 * when it has ended, and everything else before it was answered. Otherwise one loop that writes would hold the database
 * for ever.
 *
 * The time of all scripts is the engine's own count (INFO commandstats), asked for behind a script's reply, at most ten
 * times a second. Above the credits of a minute scripts are refused until the next one.
 */
export class ScriptWatch {
  limits: ScriptLimits
  readonly #options: ScriptWatchOptions
  /** When each script in flight was sent, in order. */
  readonly #inFlight = new Set<{ readonly sentAtMs: number }>()
  #timerIsSet = false
  /** Since when the engine says of the script that runs that it cannot be ended. */
  #unendableSinceMs: number | undefined
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

  /** A script is being sent. Call what is returned when it is answered. */
  begin(): () => void {
    const script = { sentAtMs: this.#options.clock.now() }
    this.#inFlight.add(script)
    this.#setTimer()
    if (this.#engineUs === undefined) this.#askTime()
    return () => {
      this.#inFlight.delete(script)
      this.#unendableSinceMs = undefined
      this.#askTime()
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
    if (oldest && this.#options.clock.now() - oldest.sentAtMs >= this.limits.timeoutMs)
      this.#endScript(oldest).catch(() => {
        // The engine cannot be reached; while the script runs, the next turn tries again.
      })
    this.#setTimer()
  }

  async #endScript(overdue: { readonly sentAtMs: number }): Promise<void> {
    const replies = await this.#options.interrupt(KILL, 2)
    if (!replies.includes('UNKILLABLE') || !this.#inFlight.has(overdue)) return
    const nowMs = this.#options.clock.now()
    this.#unendableSinceMs ??= nowMs
    if (nowMs - this.#unendableSinceMs < LONGEST_UNENDABLE_MS) return
    this.#unendableSinceMs = undefined
    this.#options.breakOff()
  }

  #askTime(): void {
    const nowMs = this.#options.clock.now()
    if (this.limits.msPerMinute === Number.POSITIVE_INFINITY || this.#asking) return
    if (this.#engineUs !== undefined && nowMs - this.#askedAtMs < LONGEST_UNASKED_MS) return
    this.#asking = true
    this.#askedAtMs = nowMs
    this.#options.ask(COMMAND_STATS).then(
      (reply) => this.#account(textReply(reply)),
      (_lost: HomeportError) => {
        this.#asking = false
      },
    )
  }

  #account(stats: string): void {
    this.#asking = false
    let engineUs = 0
    for (const [, us] of stats.matchAll(SCRIPT_TIME)) engineUs += Number(us)
    const last = this.#engineUs ?? engineUs
    this.#engineUs = engineUs
    this.#turn()
    // An engine that was started again counts from 0.
    this.#usedUs += engineUs >= last ? engineUs - last : engineUs
  }

  #turn(): void {
    const minute = Math.floor(this.#options.clock.now() / MINUTE_MS)
    if (minute === this.#minute) return
    this.#minute = minute
    this.#usedUs = 0
  }
}
