/**
 * What one database did in a stretch of time, in a form that can be put together: the sample of an hour is made of
 * those of its minutes. It lies in the store as JSON, with commands by name, so that it outlives changes of the table
 * of commands.
 */

/** What is added up. */
export interface UsageCounters {
  /** As they are billed: a write also counts once for each read region. */
  readonly requests: number
  readonly reads: number
  readonly writes: number
  readonly scripts: number
  /** Commands that touch no key. */
  readonly others: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Of keys, as the engine counts them. */
  readonly hits: number
  readonly misses: number
}

/** What holds at the end of the stretch. */
export interface UsageGauges {
  /** Client connections. */
  readonly open: number
  readonly monitors: number
  readonly keys: number
  /** Of the data set, as the limit counts it. */
  readonly usedBytes: number
  readonly diskBytes: number
}

/** How long commands took. */
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
  /** The most client connections that one flush interval saw, those included that have ended. */
  readonly connections: number
  readonly readLatency: LatencyCounts
  readonly writeLatency: LatencyCounts
  /** How often each command was sent, by its name in upper case. */
  readonly commands: Readonly<Record<string, number>>
}

/** No duration at all. */
export const NO_LATENCY: LatencyCounts = { count: 0, sumUs: 0, steps: [] }

/** Puts the sample of a stretch and that of a later one together. */
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

/** Durations of both. */
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

/** How a sample lies in the store. */
export function packSample(sample: UsageSample): string {
  return JSON.stringify(sample)
}

/** Takes a sample out of the store. Only `packSample` writes there. */
export function unpackSample(text: string): UsageSample {
  const sample: UsageSample = JSON.parse(text)
  return sample
}
