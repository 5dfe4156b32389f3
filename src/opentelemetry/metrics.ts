import { type HrTime, ValueType } from '@opentelemetry/api'
import { hrTime, millisToHrTime } from '@opentelemetry/core'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricDeclaration } from '../contract/metrics/declaration.js'
import { METRICS } from '../contract/metrics/metrics.js'
import { type Figures, type HistogramFigure, type MetricValue, valuesOf } from '../telemetry/index.js'
import { SCOPE } from './scope.js'

/** Reads the present figures. */
export type ReadFigures = () => Promise<Figures>

/** Gives the SDK the figures of `GET /metrics`, under the same names and in the form of the SDK's own instruments. */
export class FigureProducer implements MetricProducer {
  readonly #read: ReadFigures
  readonly #startTime = millisToHrTime(Math.round(performance.timeOrigin))

  constructor(read: ReadFigures) {
    this.#read = read
  }

  async collect(): Promise<CollectionResult> {
    const figures = await this.#read()
    const span = { startTime: this.#startTime, endTime: hrTime() }
    const metrics = Object.entries(METRICS).flatMap(([name, declaration]) => {
      // The catalogue is keyed by these names.
      const values = valuesOf(figures[name as keyof Figures])
      return values.length === 0 ? [] : [metricOf(name, declaration, values, span)]
    })
    const scopeMetrics = [{ scope: SCOPE, metrics }]
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] }
  }
}

interface Span {
  readonly startTime: HrTime
  readonly endTime: HrTime
}

/** The unit of a metric, by the last part of its name. */
function unitOf(name: string): string {
  const base = name.replace(/_total$/, '')
  if (base.endsWith('_seconds')) return 's'
  return base.endsWith('_bytes') ? 'By' : ''
}

function metricOf(
  name: string,
  { kind, help }: MetricDeclaration,
  values: readonly MetricValue[],
  span: Span,
): MetricData {
  const descriptor = { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE }
  const base = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE }
  switch (kind) {
    case 'counter':
      return { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: numbers(values, span) }
    case 'gauge':
      return { ...base, dataPointType: DataPointType.GAUGE, dataPoints: numbers(values, span) }
    case 'histogram':
      return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(values, span) }
  }
}

function numbers(values: readonly MetricValue[], span: Span): DataPoint<number>[] {
  return values.flatMap(({ labels, value }) =>
    typeof value === 'number' ? [{ ...span, attributes: labels, value }] : [],
  )
}

function histograms(values: readonly MetricValue[], span: Span): DataPoint<Histogram>[] {
  return values.flatMap(({ labels, value }) =>
    typeof value === 'number' ? [] : [{ ...span, attributes: labels, value: histogramOf(value) }],
  )
}

function histogramOf({ bounds, counts, sum }: HistogramFigure): Histogram {
  const copy = Array.from(counts)
  return { buckets: { boundaries: [...bounds], counts: copy }, sum, count: copy.reduce((all, one) => all + one, 0) }
}
