/** Areas of metrics, in the order in which `docs/metrics.md` lists them. */
export const METRIC_AREAS = [
  'Server',
  'Process',
  'Store',
  'Queue',
  'Destinations',
  'Workflows',
  'Bulk actions',
  'Cluster',
  'Gateway and databases',
  'Single databases',
] as const

/** A metric of `GET /metrics`, declared once: rendering, types and `docs/metrics.md` come from it. */
export interface MetricDeclaration {
  readonly area: (typeof METRIC_AREAS)[number]
  /** A counter begins at 0 when the process starts, and only grows. */
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** Names of its labels. */
  readonly labels: readonly string[]
  /** One line for people, with the values of the labels. */
  readonly help: string
}
