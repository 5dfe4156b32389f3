import { COMMANDS, type Command } from '../contract/databases/commands.js'

/** Counters of a calendar month (UTC). */
export interface MonthCount {
  /** Months since January of the year 0; 0 before anything was counted. */
  index: number
  /** Billed requests: a write also counts once for each read region. */
  requests: number
  /** `bytesIn + bytesOut` at the start of the month; negative if an earlier process counted bytes of this month. */
  bytesOffset: number
}

/** How many commands of each kind were sent to an engine. Scripts that may write are `scripts`, not `writes`. */
export interface CommandTotals {
  readonly reads: number
  readonly writes: number
  readonly scripts: number
  /** Commands that touch no key, such as PING, PUBLISH or MULTI. */
  readonly others: number
}

const SCRIPTS: ReadonlySet<string> = new Set(['EVAL', 'EVALSHA', 'EVALSHA_RO', 'EVAL_RO', 'FCALL', 'FCALL_RO'])

/** Position of each command in `COMMANDS`, and so in `DatabaseMeter.commandCounts`. */
export const COMMAND_INDEX: ReadonlyMap<string, number> = new Map(COMMANDS.map(({ name }, index) => [name, index]))

/** Whether a command runs a script or a function, given its name in upper case. */
export function isScript(name: string): boolean {
  return SCRIPTS.has(name)
}

/** The category in which a command is counted. */
export function countedAs(command: Command): keyof CommandTotals {
  if (isScript(command.name)) return 'scripts'
  if (!command.allowed || command.access === 'none') return 'others'
  return command.access === 'read' ? 'reads' : 'writes'
}

/** Shared by all databases that have received no command. */
const NO_COUNTS = new Float64Array(COMMANDS.length)

/** The month of a time, in the format of `MonthCount.index`. `nowMs` is Unix milliseconds. */
export function monthIndex(nowMs: number): number {
  const date = new Date(nowMs)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/** Start of the month after that of `nowMs`, Unix milliseconds. */
export function nextMonthMs(nowMs: number): number {
  const date = new Date(nowMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

/**
 * Counters of one database. They only grow, except `connections`, `holds` and `month`. The gateway updates them for every
 * command, so nothing here allocates after the first command; the usage statistics read them periodically and work with
 * differences. Most databases sleep, so large arrays are allocated with the first command.
 *
 * Hits and misses are not here: the engine counts them (`keyspace_hits` in INFO).
 */
export class DatabaseMeter {
  #commandCounts: Float64Array | undefined
  /** Billed requests of this calendar month. The usage book adds the requests from before the last restart. */
  readonly month: MonthCount = { index: 0, requests: 0, bytesOffset: 0 }
  /** The month before, in case the clock is set back into it. */
  #monthBefore: { readonly index: number; readonly requests: number; readonly bytes: number } | undefined
  /** Bytes from clients: all bytes of the Redis protocol; bodies and targets of HTTP. */
  bytesIn = 0
  /** Bytes to clients, counted in the same way. */
  bytesOut = 0
  /** Open client connections. */
  connections = 0
  /** Client connections accepted so far. */
  connectionsTotal = 0
  /** Time from sending a command to its reply; commands sent together count once. */
  readonly readLatency = new LatencyHistogram()
  readonly writeLatency = new LatencyHistogram()
  /** Commands that the engine refused because its memory limit is reached. */
  refusedForSpace = 0
  /** Commands refused because the requests of the month or its budget are used up. */
  refusedForRequests = 0
  /** Clients refused because there are too many. */
  refusedClients = 0
  /** Commands, or groups of commands, that waited because of the command rate. */
  delayedForRate = 0
  /** Time of the last command, Unix milliseconds; 0 before the first. */
  lastActivityAtMs = 0
  /**
   * Open blocking commands, subscriptions, monitors and event streams. The engine must not sleep while there are any.
   */
  holds = 0

  /** How often each command was sent to the engine, by its position in `COMMANDS`. */
  get commandCounts(): ArrayLike<number> {
    return this.#commandCounts ?? NO_COUNTS
  }

  /** Counts a command, by its position in `COMMANDS`. `times` is -1 for a counted command that was not sent after all. */
  countCommand(index: number, times: number): void {
    this.#commandCounts ??= new Float64Array(NO_COUNTS.length)
    this.#commandCounts[index] = (this.#commandCounts[index] ?? 0) + times
  }

  /** Bytes in and out since the start of the month. */
  get monthBytes(): number {
    return this.bytesIn + this.bytesOut - this.month.bytesOffset
  }

  /** Starts a new month with zero counts, or continues the month before if the clock was set back. */
  turnMonth(index: number): void {
    const { month, monthBytes: bytes } = this
    const again = this.#monthBefore?.index === index ? this.#monthBefore : { requests: 0, bytes: 0 }
    this.#monthBefore = { index: month.index, requests: month.requests, bytes }
    const bytesOffset = this.bytesIn + this.bytesOut - again.bytes
    Object.assign(month, { index, requests: again.requests, bytesOffset })
  }

  /** The sums of `commandCounts`. */
  totals(): CommandTotals {
    const totals = { reads: 0, writes: 0, scripts: 0, others: 0 }
    COMMANDS.forEach((command, index) => {
      totals[countedAs(command)] += this.commandCounts[index] ?? 0
    })
    return totals
  }

  /** Counts by command name, without zeros. */
  byCommand(): ReadonlyMap<string, number> {
    const counts = COMMANDS.map(({ name }, index): [string, number] => [name, this.commandCounts[index] ?? 0])
    return new Map(counts.filter(([, count]) => count > 0))
  }
}

const STEPS_PER_OCTAVE = 4
const OCTAVES = 27
/** Shared by all empty histograms. */
const NO_DURATIONS = new Float64Array(OCTAVES * STEPS_PER_OCTAVE)

/**
 * A histogram of durations from 1 µs to about 2 minutes, with four steps per doubling, so percentiles are exact to 25 %.
 * Only the first duration allocates memory.
 */
export class LatencyHistogram {
  #counts: Float64Array | undefined
  count = 0
  sumUs = 0

  /** Number of durations in each step. */
  get counts(): ArrayLike<number> {
    return this.#counts ?? NO_DURATIONS
  }

  /** Adds a duration in microseconds. */
  record(durationUs: number): void {
    this.count++
    this.sumUs += durationUs
    const step = stepOf(durationUs)
    this.#counts ??= new Float64Array(NO_DURATIONS.length)
    this.#counts[step] = (this.#counts[step] ?? 0) + 1
  }

  /**
   * A percentile in microseconds: the upper end of the step that contains it; 0 when empty. `share` is 0 to 1.
   */
  percentileUs(share: number): number {
    let left = share * this.count
    const { counts } = this
    for (let step = 0; step < counts.length; step++) {
      left -= counts[step] ?? 0
      if (left <= 0 && this.count > 0) return upperEndUs(step)
    }
    return 0
  }
}

/**
 * The same percentile for a stored histogram: a list of steps in ascending order, each followed by its count. Returns
 * microseconds; 0 when empty.
 */
export function percentileOfSteps(steps: readonly number[], share: number): number {
  let left = 0
  for (let at = 1; at < steps.length; at += 2) left += steps[at] ?? 0
  left *= share
  for (let at = 0; at + 1 < steps.length; at += 2) {
    left -= steps[at + 1] ?? 0
    if (left <= 0) return upperEndUs(steps[at] ?? 0)
  }
  return 0
}

function stepOf(durationUs: number): number {
  const whole = Math.max(STEPS_PER_OCTAVE, Math.ceil(durationUs))
  const octave = 31 - Math.clz32(whole)
  const quarter = (whole >>> (octave - 2)) & (STEPS_PER_OCTAVE - 1)
  return Math.min(octave * STEPS_PER_OCTAVE + quarter, OCTAVES * STEPS_PER_OCTAVE - 1)
}

function upperEndUs(step: number): number {
  const octave = Math.floor(step / STEPS_PER_OCTAVE)
  return 2 ** octave * (1 + ((step % STEPS_PER_OCTAVE) + 1) / STEPS_PER_OCTAVE)
}
