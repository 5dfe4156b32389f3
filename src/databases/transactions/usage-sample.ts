/**
 * The usage of one database in a bucket of time, in a form that can be merged: the sample of an hour is merged from those
 * of its minutes. It is stored as JSON with commands by name, so that it stays valid when the command table changes.
 */

/** Counters, which are added up. */
export interface UsageCounters {
  /** As billed: a write also counts once for each read region. */
  readonly requests: number
  readonly reads: number
  readonly writes: number
  readonly scripts: number
  /** Commands that touch no key. */
  readonly others: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Lookups of existing keys, as the engine counts them. */
  readonly hits: number
  readonly misses: number
}

/** Gauges at the end of the bucket. */
export interface UsageGauges {
  /** Client connections. */
  readonly open: number
  readonly monitors: number
  readonly keys: number
  /** Size of the data set, as the plan's limit counts it. */
  readonly usedBytes: number
  readonly diskBytes: number
}

/** Latencies of commands. */
export interface LatencyCounts {
  readonly count: number
  readonly sumUs: number
  /** Steps of a `LatencyHistogram` that are not empty, ascending, each followed by its count. */
  readonly steps: readonly number[]
}

/** See the top of this file. */
export interface UsageSample {
  readonly counters: UsageCounters
  readonly gauges: UsageGauges
  /** The most client connections in one flush interval, including those that have ended. */
  readonly connections: number
  readonly readLatency: LatencyCounts
  readonly writeLatency: LatencyCounts
  /** How often each command was sent, by its name in upper case. */
  readonly commands: Readonly<Record<string, number>>
}

/** No measured command. */
export const NO_LATENCY: LatencyCounts = { count: 0, sumUs: 0, steps: [] }

/** Merges a sample with a later one. */
export function mergeSamples(earlier: UsageSample, later: UsageSample): UsageSample {
  return {
    counters: addCounters(earlier.counters, later.counters),
    gauges: later.gauges,
    connections: Math.max(earlier.connections, later.connections),
    readLatency: mergeLatency(earlier.readLatency, later.readLatency),
    writeLatency: mergeLatency(earlier.writeLatency, later.writeLatency),
    commands: addCommands(earlier.commands, later.commands),
  }
}

function addCounters(one: UsageCounters, other: UsageCounters): UsageCounters {
  return {
    requests: one.requests + other.requests,
    reads: one.reads + other.reads,
    writes: one.writes + other.writes,
    scripts: one.scripts + other.scripts,
    others: one.others + other.others,
    bytesIn: one.bytesIn + other.bytesIn,
    bytesOut: one.bytesOut + other.bytesOut,
    hits: one.hits + other.hits,
    misses: one.misses + other.misses,
  }
}

/** Merges two histograms. */
export function mergeLatency(one: LatencyCounts, other: LatencyCounts): LatencyCounts {
  if (one.count === 0) return other
  if (other.count === 0) return one
  const counts = new Map<number, number>()
  for (const { steps } of [one, other]) {
    for (let at = 0; at + 1 < steps.length; at += 2) {
      const step = steps[at] ?? 0
      counts.set(step, (counts.get(step) ?? 0) + (steps[at + 1] ?? 0))
    }
  }
  const steps = [...counts].sort(([left], [right]) => left - right).flat()
  return { count: one.count + other.count, sumUs: one.sumUs + other.sumUs, steps }
}

function addCommands(one: UsageSample['commands'], other: UsageSample['commands']): UsageSample['commands'] {
  const sums: Record<string, number> = { ...one }
  for (const [name, count] of Object.entries(other)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

/** Serialises a sample for the store. */
export function packSample(sample: UsageSample): string {
  return JSON.stringify(sample)
}

/** Parses a stored sample. Only `packSample` writes them. */
export function unpackSample(text: string): UsageSample {
  const sample: UsageSample = JSON.parse(text)
  return sample
}
