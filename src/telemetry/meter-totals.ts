import type { CommandTotals, DatabaseMeter, LatencyHistogram } from './database-meter.js'
import type { HistogramFigure } from './histogram.js'
import { byLabel, type Figures } from './metrics.js'

/** Steps of a latency histogram in one bucket: the steps of one doubling. */
const STEPS_PER_BUCKET = 4
/** Exponents of the bounds in microseconds: from 64 µs to 8.4 s. */
const FIRST_EXPONENT = 6
const LAST_EXPONENT = 23
const BOUNDS = Array.from({ length: LAST_EXPONENT - FIRST_EXPONENT + 1 }, (_, at) => 2 ** (FIRST_EXPONENT + at) / 1e6)

const KINDS = ['reads', 'writes', 'scripts', 'others'] as const
/** The plain counters of a meter that `MeterTotals` adds up. */
const COUNTERS = [
  'bytesIn',
  'bytesOut',
  'connectionsTotal',
  'refusedForSpace',
  'refusedForRequests',
  'refusedClients',
  'delayedForRate',
] as const

type Counter = (typeof COUNTERS)[number]

/** Counters of one meter at one moment. */
interface Reading {
  readonly commands: CommandTotals
  readonly counters: Readonly<Record<Counter, number>>
  readonly reads: HistogramFigure
  readonly writes: HistogramFigure
}

/**
 * The sums of the meters of all databases. They never shrink: the counts of a deleted database up to the last call of
 * `look` are kept. A call costs a few microseconds for each database that was ever used.
 */
export class MeterTotals {
  readonly #last = new WeakMap<DatabaseMeter, Reading>()
  readonly #commands = { reads: 0, writes: 0, scripts: 0, others: 0 }
  readonly #counters = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<Counter, number>
  readonly #reads = new Sum()
  readonly #writes = new Sum()
  #connections = 0

  /** Adds the counts since the last call. */
  look(meters: Iterable<DatabaseMeter>): void {
    this.#connections = 0
    for (const meter of meters) {
      this.#connections += meter.connections
      if (meter.lastActivityAtMs > 0 || meter.connectionsTotal > 0) this.#add(meter)
    }
  }

  #add(meter: DatabaseMeter): void {
    const last = this.#last.get(meter)
    const now = readingOf(meter)
    this.#last.set(meter, now)
    for (const kind of KINDS) this.#commands[kind] += Math.max(0, now.commands[kind] - (last?.commands[kind] ?? 0))
    for (const name of COUNTERS) this.#counters[name] += now.counters[name] - (last?.counters[name] ?? 0)
    this.#reads.add(now.reads, last?.reads)
    this.#writes.add(now.writes, last?.writes)
  }

  /** The sums as of the last call of `look`. */
  get figures(): Figures {
    const { bytesIn, bytesOut, connectionsTotal, ...limits } = this.#counters
    return {
      homeport_gateway_commands_total: byLabel('kind', this.#commands),
      homeport_gateway_bytes_total: byLabel('direction', { in: bytesIn, out: bytesOut }),
      homeport_gateway_command_duration_seconds: byLabel<HistogramFigure>('kind', {
        reads: this.#reads,
        writes: this.#writes,
      }),
      homeport_gateway_connections: this.#connections,
      homeport_gateway_connections_accepted_total: connectionsTotal,
      homeport_gateway_limit_hits_total: byLabel('limit', {
        data_size: limits.refusedForSpace,
        requests: limits.refusedForRequests,
        command_rate: limits.delayedForRate,
        connections: limits.refusedClients,
      }),
    }
  }
}

/** A histogram that others are added to. */
class Sum implements HistogramFigure {
  readonly bounds = BOUNDS
  readonly counts = new Float64Array(BOUNDS.length + 1)
  sum = 0

  add(now: HistogramFigure, last: HistogramFigure | undefined): void {
    this.sum += now.sum - (last?.sum ?? 0)
    for (let at = 0; at < this.counts.length; at++)
      this.counts[at] = (this.counts[at] ?? 0) + (now.counts[at] ?? 0) - (last?.counts[at] ?? 0)
  }
}

function readingOf(meter: DatabaseMeter): Reading {
  const { bytesIn, bytesOut, connectionsTotal, refusedForSpace, refusedForRequests, refusedClients, delayedForRate } =
    meter
  return {
    commands: meter.totals(),
    counters: {
      bytesIn,
      bytesOut,
      connectionsTotal,
      refusedForSpace,
      refusedForRequests,
      refusedClients,
      delayedForRate,
    },
    reads: secondsOf(meter.readLatency),
    writes: secondsOf(meter.writeLatency),
  }
}

/** Latencies in coarser buckets. The steps from 2^n to 2^(n+1) µs are in the bucket that ends at 2^(n+1) µs. */
function secondsOf({ counts, sumUs }: LatencyHistogram): HistogramFigure {
  const coarse = new Float64Array(BOUNDS.length + 1)
  for (let step = 0; step < counts.length; step++) {
    const upper = Math.floor(step / STEPS_PER_BUCKET) + 1
    const bucket = Math.min(Math.max(0, upper - FIRST_EXPONENT), BOUNDS.length)
    coarse[bucket] = (coarse[bucket] ?? 0) + (counts[step] ?? 0)
  }
  return { bounds: BOUNDS, counts: coarse, sum: sumUs / 1e6 }
}
