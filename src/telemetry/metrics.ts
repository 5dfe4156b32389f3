import { Counter, Gauge, Registry } from 'prom-client'

/** One figure of a metric. */
export interface MetricValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric with all its figures. Every figure has the same labels. */
export interface Metric {
  /** By the conventions of Prometheus: the unit, and `_total` for what is counted. */
  readonly name: string
  /** One line for people. */
  readonly help: string
  /** A counter only grows while a process lives. */
  readonly kind: 'counter' | 'gauge'
  readonly values: readonly MetricValue[]
}

/** What the answer of a scrape is said to be. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** Metrics in the text form of Prometheus; those without a figure are left out. */
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

/** What this process takes of its machine. Asked for when it is scraped, so it costs nothing meanwhile. */
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
