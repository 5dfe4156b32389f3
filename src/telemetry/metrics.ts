import { Counter, Gauge, Registry } from 'prom-client'

/** One value of a metric. */
export interface MetricValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric with all its values, which have the same label names. */
export interface Metric {
  /** Follows the conventions of Prometheus: ends in the unit, or in `_total` for a counter. */
  readonly name: string
  /** One line for people. */
  readonly help: string
  /** A counter never decreases while the process runs. */
  readonly kind: 'counter' | 'gauge'
  readonly values: readonly MetricValue[]
}

/** Content type of a scrape's response. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** Metrics in the text format of Prometheus; metrics without values are left out. */
export function renderMetrics(metrics: readonly Metric[]): Promise<string> {
  const registry = new Registry()
  for (const { name, help, kind, values } of metrics) {
    const [first] = values
    if (!first) continue
    const settings = { name, help, labelNames: Object.keys(first.labels), registers: [registry] }
    const metric = kind === 'counter' ? new Counter(settings) : new Gauge(settings)
    for (const { labels, value } of values) metric.inc(labels, value)
  }
  return registry.metrics()
}

/** Resource usage of this process. Measured at each scrape, so it costs nothing between scrapes. */
export function processMetrics(): readonly Metric[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  const { utilization } = performance.eventLoopUtilization()
  const only = (value: number): readonly MetricValue[] => [{ labels: {}, value }]
  const startedAt = performance.timeOrigin / 1000
  return [
    { name: 'process_start_time_seconds', help: 'Start, Unix seconds.', kind: 'gauge', values: only(startedAt) },
    {
      name: 'process_cpu_seconds_total',
      help: 'CPU time, without engines.',
      kind: 'counter',
      values: only((user + system) / 1e6),
    },
    { name: 'process_resident_memory_bytes', help: 'Memory, without engines.', kind: 'gauge', values: only(rss) },
    { name: 'nodejs_heap_used_bytes', help: 'Memory of objects.', kind: 'gauge', values: only(heapUsed) },
    {
      name: 'nodejs_eventloop_utilization_ratio',
      help: 'Share of its life that the event loop was busy.',
      kind: 'gauge',
      values: only(utilization),
    },
  ]
}
