import { COMMANDS, type Command } from '../contract/databases/commands.js'

/** A calendar month in UTC and what was counted in it. */
export interface MonthCount {
  /** Months since January of the year 0; 0 as long as nothing was counted. */
  index: number
  /** Requests as they are billed: a write also counts once for each read region. */
  requests: number
  /** What `bytesIn` and `bytesOut` were together when the month began; negative where earlier lives counted. */
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

/** What a command counts as. */
export function countedAs(command: Command): keyof CommandTotals {
  if (isScript(command.name)) return 'scripts'
  if (!command.allowed || command.access === 'none') return 'others'
  return command.access === 'read' ? 'reads' : 'writes'
}

/** The counts of every database that was sent nothing. */
const NO_COUNTS = new Float64Array(COMMANDS.length)

/** The month that a time is in. `nowMs` is Unix milliseconds. */
export function monthIndex(nowMs: number): number {
  const date = new Date(nowMs)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/** When the month after that of `nowMs` begins, Unix milliseconds. */
export function nextMonthMs(nowMs: number): number {
  const date = new Date(nowMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

/**
 * What happened on one database, as plain counters that only grow, apart from `connections`, `holds` and `month`. The
 * data plane writes them for every command, so nothing here allocates after the first; what keeps the time series reads
 * them now and then and works with differences. Most databases sleep, so what takes room is made with the first
 * command.
 *
 * Hits and misses are not here: the engine counts them (`keyspace_hits` in INFO).
 */
export class DatabaseMeter {
  #commandCounts: Float64Array | undefined
  /** Requests as they are billed, this calendar month. The usage book adds what was counted before the last restart. */
  readonly month: MonthCount = { index: 0, requests: 0, bytesOffset: 0 }
  /** Bytes that clients sent: of the Redis protocol all, of HTTP the bodies and targets. */
  bytesIn = 0
  /** Bytes that clients were sent, counted alike. */
  bytesOut = 0
  /** Client connections at the moment. */
  connections = 0
  /** Client connections ever accepted. */
  connectionsTotal = 0
  /** From a command's departure to its reply; of commands sent together, one. */
  readonly readLatency = new LatencyHistogram()
  readonly writeLatency = new LatencyHistogram()
  /** Commands that the engine refused because its data set is full. */
  refusedForSpace = 0
  /** When a command last came in, Unix milliseconds; 0 before the first. */
  lastActivityAtMs = 0
  /**
   * Blocking commands, subscriptions, monitors and event streams that are open: the engine must not sleep meanwhile.
   */
  holds = 0

  /** How often each command was sent to the engine; by its position in `COMMANDS`. */
  get commandCounts(): ArrayLike<number> {
    return this.#commandCounts ?? NO_COUNTS
  }

  /** Counts a command by its position in `COMMANDS`; with -1 for `times`, one that was counted and is not sent. */
  countCommand(index: number, times: number): void {
    this.#commandCounts ??= new Float64Array(NO_COUNTS.length)
    this.#commandCounts[index] = (this.#commandCounts[index] ?? 0) + times
  }

  /** Bytes in and out since the month began. */
  get monthBytes(): number {
    return this.bytesIn + this.bytesOut - this.month.bytesOffset
  }

  /** Begins another month, of which nothing is counted yet. */
  turnMonth(index: number): void {
    Object.assign(this.month, { index, requests: 0, bytesOffset: this.bytesIn + this.bytesOut })
  }

  /** The sums of `commandCounts`. */
  totals(): CommandTotals {
    const totals = { reads: 0, writes: 0, scripts: 0, others: 0 }
    COMMANDS.forEach((command, index) => {
      totals[countedAs(command)] += this.commandCounts[index] ?? 0
    })
    return totals
  }

  /** Counts by name of every command that was sent at all. */
  byCommand(): ReadonlyMap<string, number> {
    const counts = COMMANDS.map(({ name }, index): [string, number] => [name, this.commandCounts[index] ?? 0])
    return new Map(counts.filter(([, count]) => count > 0))
  }
}

const STEPS_PER_OCTAVE = 4
const OCTAVES = 27
/** The steps of every histogram that is empty. */
const NO_DURATIONS = new Float64Array(OCTAVES * STEPS_PER_OCTAVE)

/**
 * Durations in steps of a quarter of a doubling, from 1 µs to about 2 minutes: any percentile of them is exact to 25 %.
 * Recording allocates nothing but the steps, once, with the first duration.
 */
export class LatencyHistogram {
  #counts: Float64Array | undefined
  count = 0
  sumUs = 0

  /** How many durations fell into each step. */
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
   * The upper end of the step below which the given share (0 to 1) of the durations lies, microseconds; 0 when empty.
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
 * The same share of durations that lie apart from their histogram: its steps, each followed by its count, ascending.
 * Answers microseconds; 0 without durations.
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
