import { Registry } from 'prom-client'
import type { MetricDeclaration } from '../contract/metrics/declaration.js'
import { METRICS, type MetricName } from '../contract/metrics/metrics.js'
import type { HistogramFigure } from './histogram.js'

/** One value of a metric, with a value for every label of its declaration. */
export interface MetricValue<Figure = number | HistogramFigure> {
  readonly labels: Readonly<Record<string, string>>
  readonly value: Figure
}

/** The figures of a scrape by metric: one value for a metric without labels, else a list. Unknown figures are absent. */
export type Figures = Readonly<Partial<Record<MetricName, number | HistogramFigure | readonly MetricValue[]>>>

/** Content type of a scrape's response. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** A line of the text format. */
interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

/** Figures with one label, by its values. */
export function byLabel<Figure extends number | HistogramFigure>(
  label: string,
  figures: Readonly<Record<string, Figure>>,
): readonly MetricValue<Figure>[] {
  return Object.entries(figures).map(([name, value]) => ({ labels: { [label]: name }, value }))
}

/** Figures in the text format of Prometheus, in the order of their declarations; metrics without values are left out. */
export function renderMetrics(figures: Figures): Promise<string> {
  const registry = new Registry()
  for (const [name, { kind, help }] of Object.entries<MetricDeclaration>(METRICS)) {
    // The catalogue is keyed by these names.
    const values = valuesOf(figures[name as MetricName])
    if (values.length === 0) continue
    const samples = values.flatMap((value) => samplesOf(name, value))
    // The registry uses only these members of a metric. The library's metric classes would count the values a second time.
    const metric = { name, help, type: kind, get: async () => ({ name, help, type: kind, values: samples }) }
    registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
  }
  return registry.metrics()
}

/** The values of a metric, each with its labels. */
export function valuesOf(figure: Figures[MetricName]): readonly MetricValue[] {
  if (figure === undefined) return []
  return isList(figure) ? figure : [{ labels: {}, value: figure }]
}

const isList = (figure: number | HistogramFigure | readonly MetricValue[]): figure is readonly MetricValue[] =>
  Array.isArray(figure)

function samplesOf(name: string, { labels, value }: MetricValue): readonly Sample[] {
  return typeof value === 'number' ? [{ labels, value }] : bucketsOf(name, labels, value)
}

/** Buckets of the text format count everything up to their bound. */
function bucketsOf(
  name: string,
  labels: Sample['labels'],
  { bounds, counts, sum }: HistogramFigure,
): readonly Sample[] {
  let count = 0
  const buckets = [...bounds, '+Inf'].map((le, index) => {
    count += counts[index] ?? 0
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
