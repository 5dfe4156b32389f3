import type { Clock } from '../../base/index.js'
import { HomeportError, refusal } from '../../contract/errors/errors.js'
import { type DatabaseMeter, monthIndex, nextMonthMs } from '../../telemetry/index.js'
import { findRow, missingCommand, type ServedCommand } from '../commands/command-table.js'
import type { ClientCounts, ReadsElsewhere } from '../deps.js'
import { type DatabaseUsage, DEFAULT_MAX_CLIENTS, DEFAULT_MAX_REQUEST_BYTES, type ServedDatabase } from '../deps.js'
import type { ReplyLimits } from '../engine/reply-gate.js'
import { errorText } from '../error-text.js'
import { Monitors } from '../monitor/monitors.js'
import { type Argument, encodeArray, encodeBulk, encodeCommand, encodeError, encodeInteger } from '../resp/encode.js'
import { needsSpace } from './command-effect.js'
import { CommandPause } from './command-pause.js'
import { type AskEngine, textReply } from './engine-questions.js'
import { EntryWatch, type Growth } from './entry-watch.js'
import { growthOf, inspectKeys, uploadGrowth } from './inspect.js'
import { PendingWatch, type ReadBatch } from './pending-watch.js'
import { Bandwidth, CommandRate } from './rates.js'
import { ScriptWatch } from './script-watch.js'

/** The collaborators of a guard. */
export interface GuardOptions {
  readonly clock: Clock
  /** See `ScriptWatchOptions`. */
  readonly elapsedMs: () => number
  /** Asks the engine of this database on a shared lane. */
  readonly ask: AskEngine
  /** Asks the engine for FUNCTION LIST in RESP2. */
  readonly listFunctions: () => Promise<Buffer>
  /** Sends commands to the engine on a new connection. */
  readonly interrupt: (commands: string, count: number) => Promise<string>
  /** See `ScriptWatchOptions`. */
  readonly restartEngine: () => boolean
  /** See `ScriptWatchOptions`. */
  readonly runsScript: () => 'surely' | 'perhaps' | 'no'
  /** Whether the engines' disk has space for more data. */
  readonly hasSpace: () => boolean
  /** Called when an engine reports that it cannot write because the disk is full. */
  readonly onLackOfSpace: () => void
}

const MAX_UNKNOWN_MS = 1_000
/** Another node may answer reads ahead for this time, at the rate of the plan or at most `MAX_READ_AHEAD` a second. */
const READ_AHEAD_SECONDS = 0.25
const MAX_READ_AHEAD = 100_000
const MIN_REQUEST_COMMANDS = 10_000
const MAX_REQUEST_COMMANDS = 100_000
const MEMORY_STATS = encodeCommand(['INFO', 'memory'])

/** The engine's error when its data set is full, also within an error of a script. */
const OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'"

/** The engine's error for a write when the disk was full at an earlier one. */
const LOG_FULL = /^-MISCONF Errors writing to the AOF file: (?:No space left on device|Disk quota exceeded)/

/** The engine's error for COPY onto the same key. The gateway answers 0: nothing was copied (reference redis 3.6). */
const COPY_ONTO_ITSELF = '-ERR source and destination objects are the same'
const NOTHING_COPIED = encodeInteger(0)

/** Some engines omit the second sentence of this error, but clients compare the whole text. */
const NO_SCRIPT = '-NOSCRIPT No matching script'
const NO_MATCHING_SCRIPT = encodeError('NOSCRIPT No matching script. Please use EVAL.')

/** Some engines omit the second sentence of this error, but clients look for it. */
const NOT_READ_ONLY = '-ERR Can not execute a script with write flag using *_ro command.'
const NO_WRITES_FLAG = encodeError(`${NOT_READ_ONLY.slice(1)} Write commands are not allowed from read-only scripts.`)

/** The error of newer engines for SCAN with an unknown type. The gateway answers with an empty page instead. */
const UNKNOWN_TYPE = '-ERR unknown type name'
const NO_KEYS = encodeArray([encodeBulk('0'), encodeArray([])])

/** Why a command is not sent; undefined when it may be sent. */
export type Verdict = HomeportError | undefined

/** Limits and counts the commands of one database, on both protocols. */
export class DatabaseGuard {
  readonly usage: DatabaseUsage
  readonly meter: DatabaseMeter
  readonly rate: CommandRate
  readonly bandwidth: Bandwidth
  readonly entries: EntryWatch
  readonly scripts: ScriptWatch
  /** The clients that run MONITOR. */
  readonly monitors = new Monitors()
  /** Disconnects a client that has not logged in. Returns whether there was one. */
  evictUnauthenticated: () => boolean = () => false
  /** CLIENT PAUSE. */
  readonly pause: CommandPause
  readonly #pending = new PendingWatch()
  readonly #options: GuardOptions
  #database: ServedDatabase
  #maxRequestsPerMonth = Number.POSITIVE_INFINITY
  #requestsPerWrite = 1
  #monthEndsAtMs = 0
  #dataBytes = 0
  #dataAskedAtMs = 0

  constructor(database: ServedDatabase, usage: DatabaseUsage, options: GuardOptions) {
    this.usage = usage
    this.meter = usage.meter
    this.#options = options
    this.#database = database
    this.rate = new CommandRate(Number.POSITIVE_INFINITY, options.clock, usage.meter)
    this.bandwidth = new Bandwidth(Number.POSITIVE_INFINITY, usage.meter, options.clock)
    this.entries = new EntryWatch(Number.POSITIVE_INFINITY)
    this.pause = new CommandPause(options.clock, options.listFunctions)
    this.scripts = new ScriptWatch(scriptLimits(database), options)
    this.database = database
    this.#turnMonth(options.clock.now())
  }

  /** The database with its present limits. */
  get database(): ServedDatabase {
    return this.#database
  }

  set database(database: ServedDatabase) {
    this.#database = database
    this.#maxRequestsPerMonth = database.maxRequestsPerMonth ?? Number.POSITIVE_INFINITY
    this.#requestsPerWrite = database.requestsPerWrite ?? 1
    this.rate.perSecond = database.maxCommandsPerSecond ?? Number.POSITIVE_INFINITY
    this.bandwidth.limitBytes = database.maxBytesPerMonth ?? Number.POSITIVE_INFINITY
    this.entries.limitBytes = database.maxEntryBytes ?? Number.POSITIVE_INFINITY
    this.scripts.limits = scriptLimits(database)
  }

  get maxRequestBytes(): number {
    return this.#database.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES
  }

  /** Most commands of one REST request: the plan's commands per second, between two bounds. */
  get maxRequestCommands(): number {
    const perSecond = this.#database.maxCommandsPerSecond ?? MAX_REQUEST_COMMANDS
    return Math.min(Math.max(perSecond, MIN_REQUEST_COMMANDS), MAX_REQUEST_COMMANDS)
  }

  /** The limits and wording of the engine's replies. */
  get replyLimits(): ReplyLimits {
    const maxReplyBytes = (): number => this.maxRequestBytes
    return {
      get maxReplyBytes() {
        return maxReplyBytes()
      },
      reword: (error) => this.#reword(error),
      lossError: () => (this.scripts.hasJustEndedEngine ? new HomeportError('engine_held_by_script', {}) : undefined),
    }
  }

  /** Records that the database is used. @returns the present, Unix milliseconds */
  touch(): number {
    const nowMs = this.#options.clock.now()
    this.meter.lastActivityAtMs = nowMs
    if (nowMs >= this.#monthEndsAtMs) this.#turnMonth(nowMs)
    return nowMs
  }

  /** Counts a client that connects or leaves: a connection of the Redis protocol, or an event stream. */
  countConnection(change: 1 | -1): void {
    this.meter.connections += change
    if (change > 0) this.meter.connectionsTotal++
  }

  /** The counts of clients in INFO; the engine only knows the gateway's connections. */
  get clientCounts(): ClientCounts {
    return { connected: this.meter.connections, held: this.pause.heldCount }
  }

  /**
   * Checks the number of clients. At the limit it evicts a client that has not logged in, because clients without
   * credentials must not keep out others.
   * @throws HomeportError `too_many_clients` when the database has as many clients as it may have
   */
  checkClientLimit(): void {
    if (this.meter.connections < (this.#database.maxClients ?? DEFAULT_MAX_CLIENTS)) return
    this.meter.refusedClients++
    if (!this.evictUnauthenticated()) throw new HomeportError('too_many_clients', {})
  }

  /** Whether the database accepts commands at all; `inspect` checks the limits of single commands. */
  get isOpen(): boolean {
    const { admission, meter } = this.usage
    return admission.kind === 'open' && meter.month.requests < this.#maxRequestsPerMonth && this.#options.hasSpace()
  }

  /**
   * How many more reads another node may answer without asking; see `ReadControl`. Undefined: none, because every command
   * has to pass through this guard to be refused, slowed down, held by a pause, or shown to MONITOR.
   */
  allowReads(outstanding: { readonly here: number; readonly everywhere: number }): number | undefined {
    const isFree =
      this.isOpen && !this.monitors.isWatched && this.pause.mode === undefined && this.bandwidth.waitMs === 0
    if (!isFree) return undefined
    const perSecond = Math.min(this.#database.maxCommandsPerSecond ?? MAX_READ_AHEAD, MAX_READ_AHEAD)
    const slice = Math.max(1, Math.floor(perSecond * READ_AHEAD_SECONDS)) - outstanding.here
    const left = this.#maxRequestsPerMonth - this.meter.month.requests - outstanding.everywhere
    const more = Math.max(0, Math.min(slice, left))
    return more > 0 && this.rate.takeTogether(more) ? more : 0
  }

  /** Counts a command that is sent, or with -1 uncounts one that is not sent after all. */
  count(command: ServedCommand, times: number): void {
    const { meter } = this
    meter.countCommand(command.index, times)
    meter.month.requests += command.access === 'write' ? times * this.#requestsPerWrite : times
  }

  /** Counts reads that another node has answered. They keep the database awake. */
  countReads({ commands, bytesIn, bytesOut }: ReadsElsewhere): void {
    for (const [name, count] of commands) {
      const command = findRow(name)
      if (command) this.count(command, count)
    }
    this.meter.bytesIn += bytesIn
    this.meter.bytesOut += bytesOut
    this.touch()
  }

  /**
   * Checks a command against every limit but the rate. `args` are its arguments, name first, `bytes` is its length. `ask`
   * asks the engine, after everything that the same client has sent. `batch` has the reads that are sent together with it.
   * @returns the verdict, as a promise when the engine has to be asked first
   */
  inspect(
    command: ServedCommand,
    args: readonly Argument[],
    bytes: number,
    ask: AskEngine,
    batch?: ReadBatch,
  ): Verdict | Promise<Verdict> {
    const refusal = this.#refusal(command) ?? inspectKeys(command, args, bytes)
    if (refusal) return refusal
    if (command.effect === 'delivers') return this.#pending.inspect(args, ask, batch)
    return this.#inspectGrowth(command, args, bytes, ask)
  }

  /**
   * Like `inspect`, for a command that is streamed (`isUploadable`). `before` are the arguments before the large one.
   * `bytes` and `valueBytes` are the lengths of the command and of that argument, as far as they are known.
   */
  inspectUpload(
    command: ServedCommand,
    before: readonly Argument[],
    { bytes, valueBytes }: { readonly bytes: number; readonly valueBytes: number },
    ask: AskEngine,
  ): Verdict | Promise<Verdict> {
    const refusal = this.#refusal(command) ?? inspectKeys(command, before, bytes)
    if (refusal || this.entries.limitBytes === Number.POSITIVE_INFINITY) return refusal
    const admit = (growth: Growth): number | Promise<number> =>
      command.effect === 'script' ? this.entries.admit(growth, ask) : this.entries.admitUpload(growth, ask)
    return this.#verdictOf(uploadGrowth(command, before, bytes, valueBytes).map(admit))
  }

  #reword(error: string): Buffer | undefined {
    if (error.startsWith(COPY_ONTO_ITSELF)) return NOTHING_COPIED
    if (error.startsWith(NO_SCRIPT)) return NO_MATCHING_SCRIPT
    if (error.startsWith(NOT_READ_ONLY)) return NO_WRITES_FLAG
    if (error.startsWith(UNKNOWN_TYPE)) return NO_KEYS
    if (LOG_FULL.test(error)) this.#options.onLackOfSpace()
    const ours = error.includes(OUT_OF_MEMORY) ? this.#dataTooLarge() : missingCommand(error)
    return ours && encodeError(errorText(ours))
  }

  #refusal(command: ServedCommand): Verdict {
    const { admission, meter } = this.usage
    if (admission.kind === 'refused') {
      meter.refusedForRequests++
      return admission.error
    }
    if (meter.month.requests >= this.#maxRequestsPerMonth) {
      meter.refusedForRequests++
      return refusal('request_limit', { limit: this.#maxRequestsPerMonth, usage: meter.month.requests })
    }
    if (!this.#options.hasSpace() && needsSpace(command)) return refusal('disk_nearly_full', {})
    if (command.effect !== 'script' || !this.scripts.isSpent) return undefined
    return refusal('script_credits', {
      limitMs: this.scripts.limits.msPerMinute,
      usedMs: this.scripts.usedMs,
    })
  }

  #inspectGrowth(
    command: ServedCommand,
    args: readonly Argument[],
    bytes: number,
    ask: AskEngine,
  ): Verdict | Promise<Verdict> {
    const { entries } = this
    if (command.access !== 'write' || entries.limitBytes === Number.POSITIVE_INFINITY) return undefined
    return this.#verdictOf(growthOf(command, args, bytes).map((growth) => entries.admit(growth, ask)))
  }

  #verdictOf(outcomes: readonly (number | Promise<number>)[]): Verdict | Promise<Verdict> {
    const asked = outcomes.filter((outcome) => typeof outcome !== 'number')
    if (asked.length === 0) return this.#entryVerdict(outcomes)
    return Promise.all(outcomes).then(
      (sizes) => this.#entryVerdict(sizes),
      (lost: HomeportError) => lost,
    )
  }

  /** The gateway asks for the data size at most once a second, so the first error may show the threshold as the usage. */
  #dataTooLarge(): HomeportError | undefined {
    const thresholdBytes = this.#database.maxDataBytes
    if (thresholdBytes === undefined) return undefined
    this.meter.refusedForSpace++
    const nowMs = this.#options.clock.now()
    if (nowMs - this.#dataAskedAtMs >= MAX_UNKNOWN_MS) {
      this.#dataAskedAtMs = nowMs
      this.#options.ask(MEMORY_STATS).then(
        (reply) => {
          this.#dataBytes = Number(/^used_memory:(\d+)/m.exec(textReply(reply))?.[1] ?? 0)
        },
        () => {},
      )
    }
    return refusal('data_too_large', {
      thresholdBytes,
      usageBytes: Math.max(this.#dataBytes, thresholdBytes),
    })
  }

  #entryVerdict(sizes: readonly (number | Promise<number>)[]): Verdict {
    const actualBytes = sizes.find((size) => typeof size === 'number' && size > 0)
    if (typeof actualBytes !== 'number') return undefined
    return refusal('entry_too_large', { limitBytes: this.entries.limitBytes, actualBytes })
  }

  #turnMonth(nowMs: number): void {
    const { month } = this.meter
    const index = monthIndex(nowMs)
    if (month.index !== index && month.index !== 0) this.meter.turnMonth(index)
    month.index = index
    this.#monthEndsAtMs = nextMonthMs(nowMs)
  }
}

function scriptLimits({ scriptTimeoutMs, scriptMsPerMinute, maxDataBytes }: ServedDatabase): ScriptWatch['limits'] {
  return {
    timeoutMs: scriptTimeoutMs ?? Number.POSITIVE_INFINITY,
    msPerMinute: scriptMsPerMinute ?? Number.POSITIVE_INFINITY,
    maxDataBytes: maxDataBytes ?? Number.POSITIVE_INFINITY,
  }
}
