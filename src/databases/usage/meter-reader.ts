import { COMMANDS } from '../../contract/databases/commands.js'
import type { EngineSample } from '../../fleet/index.js'
import { countedAs, type DatabaseMeter, type LatencyHistogram } from '../../telemetry/index.js'
import * as usageSample from '../transactions/usage-sample.js'

type UsageCounters = usageSample.UsageCounters
type LatencyCounts = usageSample.LatencyCounts
const { NO_LATENCY } = usageSample

/** What a meter has counted since the last reading. */
export interface Counted {
  /** Without hits and misses, which the engines count. */
  readonly counters: Omit<UsageCounters, 'hits' | 'misses'>
  readonly commands: Readonly<Record<string, number>>
  /** Client connections that were open at the last reading or were accepted since. */
  readonly connections: number
  readonly readLatency: LatencyCounts
  readonly writeLatency: LatencyCounts
}

/** The result when no command was counted. */
export const NOTHING_COUNTED: Counted = {
  counters: { requests: 0, reads: 0, writes: 0, scripts: 0, others: 0, bytesIn: 0, bytesOut: 0 },
  commands: {},
  connections: 0,
  readLatency: NO_LATENCY,
  writeLatency: NO_LATENCY,
}

const KINDS = COMMANDS.map(countedAs)
const WRITES = COMMANDS.map((command) => command.allowed && command.access === 'write')

/** A histogram at the last reading: its counts by step, without zeros. */
interface SeenLatency {
  readonly counts: Map<number, number>
  count: number
  sumUs: number
}

/** The counters at the last reading. Sparse, because most databases sleep and the others use few commands. */
interface Seen {
  /** By the position in `COMMANDS`. */
  readonly commandCounts: Map<number, number>
  readonly readLatency: SeenLatency
  readonly writeLatency: SeenLatency
}

function nothingSeen(): Seen {
  const noLatency = (): SeenLatency => ({ counts: new Map(), count: 0, sumUs: 0 })
  return { commandCounts: new Map(), readLatency: noLatency(), writeLatency: noLatency() }
}

/** Turns the counters of a meter, which only grow, into differences since the last reading. */
export class MeterReader {
  readonly #meter: DatabaseMeter
  #seen: Seen | undefined
  #bytesIn = 0
  #bytesOut = 0
  #open = 0
  #accepted = 0
  #activityAtMs = 0

  constructor(meter: DatabaseMeter) {
    this.#meter = meter
  }

  /** Whether the meter has changed since the last reading. */
  get hasChanged(): boolean {
    const { bytesIn, bytesOut, connections, connectionsTotal, lastActivityAtMs } = this.#meter
    const bytesAreSame = bytesIn === this.#bytesIn && bytesOut === this.#bytesOut
    const clientsAreSame = connections === this.#open && connectionsTotal === this.#accepted
    return !bytesAreSame || !clientsAreSame || lastActivityAtMs !== this.#activityAtMs
  }

  /** The differences since the last reading. `requestsPerWrite`: how many requests a write is billed as. */
  read(requestsPerWrite: number): Counted {
    this.#seen ??= nothingSeen()
    const { readLatency, writeLatency, bytesIn, bytesOut, connections, connectionsTotal } = this.#meter
    const counted: Counted = {
      ...this.#readCommands(this.#seen, requestsPerWrite),
      connections: this.#open + connectionsTotal - this.#accepted,
      readLatency: readHistogram(readLatency, this.#seen.readLatency),
      writeLatency: readHistogram(writeLatency, this.#seen.writeLatency),
    }
    this.#bytesIn = bytesIn
    this.#bytesOut = bytesOut
    this.#open = connections
    this.#accepted = connectionsTotal
    this.#activityAtMs = this.#meter.lastActivityAtMs
    return counted
  }

  #readCommands({ commandCounts }: Seen, requestsPerWrite: number): Pick<Counted, 'counters' | 'commands'> {
    const totals = { requests: 0, reads: 0, writes: 0, scripts: 0, others: 0 }
    const commands: Record<string, number> = {}
    const counts = this.#meter.commandCounts
    COMMANDS.forEach(({ name }, index) => {
      const now = counts[index] ?? 0
      const more = now - (commandCounts.get(index) ?? 0)
      if (more === 0) return
      commandCounts.set(index, now)
      commands[name] = more
      totals[KINDS[index] ?? 'others'] += more
      totals.requests += WRITES[index] ? more * requestsPerWrite : more
    })
    const bytesIn = this.#meter.bytesIn - this.#bytesIn
    return { counters: { ...totals, bytesIn, bytesOut: this.#meter.bytesOut - this.#bytesOut }, commands }
  }
}

/** Turns the lookups of engine processes, which only grow, into differences since the last reading. */
export class LookupReader {
  #seen: ReadonlyMap<number, Lookups> = new Map()

  /** The differences since the last reading. */
  read(lookups: EngineSample['lookups']): Lookups {
    const sums = { hits: 0, misses: 0 }
    for (const { generation, hits, misses } of lookups) {
      const before = this.#seen.get(generation) ?? { hits: 0, misses: 0 }
      sums.hits += Math.max(0, hits - before.hits)
      sums.misses += Math.max(0, misses - before.misses)
    }
    this.#seen = new Map(lookups.map(({ generation, hits, misses }) => [generation, { hits, misses }]))
    return sums
  }
}

interface Lookups {
  readonly hits: number
  readonly misses: number
}

function readHistogram(histogram: LatencyHistogram, seen: SeenLatency): LatencyCounts {
  if (histogram.count === seen.count) return NO_LATENCY
  const steps: number[] = []
  const { counts: now } = histogram
  for (let step = 0; step < now.length; step++) {
    const more = (now[step] ?? 0) - (seen.counts.get(step) ?? 0)
    if (more === 0) continue
    steps.push(step, more)
    seen.counts.set(step, now[step] ?? 0)
  }
  const counts = { count: histogram.count - seen.count, sumUs: Math.round(histogram.sumUs - seen.sumUs), steps }
  seen.count = histogram.count
  seen.sumUs = histogram.sumUs
  return counts
}
