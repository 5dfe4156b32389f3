import { randomUUID } from 'node:crypto'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { OTLPMetricExporter as JsonMetrics } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufMetrics } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as JsonTraces } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraces } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base'
import { type Service, systemClock, type Timer } from '../base/index.js'
import type { Logger, Tracer } from '../telemetry/index.js'
import { agentOf, type Lookup, namesAsDestinations } from './agent.js'
import { FigureProducer, type ReadFigures } from './metrics.js'
import { OutageLog } from './outage.js'
import { SCOPE } from './scope.js'
import type { Environment, ExportSettings, Protocol, Signal } from './settings.js'
import { SpanTracer } from './spans.js'

/** How long a stop waits for the last export. */
const FLUSH_MS = 3_000

/** What the export reads once all modules are built. */
export interface ExportDeps {
  /** The figures of the whole server. */
  readonly figures: ReadFigures
}

type Agent = ReturnType<typeof agentOf>

/** What the export takes from its process. */
export interface ExportContext {
  readonly environment: Environment
  /** Default: names are looked up like those of destinations. */
  readonly lookup?: Lookup
}

/** A running export. As a service, it stops after the modules that it reports on. */
export interface Exporting extends Service {
  /** `undefined` if only metrics are exported. */
  readonly tracer: Tracer | undefined
  /** Sets the source of the metrics. Must be called before `start`. */
  bind(deps: ExportDeps): void
}

/** The export by the official SDK, which reads all other settings from the environment. */
export class SdkExport implements Exporting {
  readonly name = 'OpenTelemetry'
  readonly tracer: Tracer | undefined
  readonly #settings: ExportSettings
  readonly #logger: Logger
  readonly #agentOf: (signal: Signal) => Agent
  readonly #resource = resourceOfProcess()
  readonly #traces: BasicTracerProvider | undefined
  #metrics: MeterProvider | undefined
  #figures: ReadFigures | undefined

  constructor(settings: ExportSettings, logger: Logger, { environment, lookup = namesAsDestinations }: ExportContext) {
    this.#settings = settings
    this.#logger = logger
    this.#agentOf = (signal) =>
      agentOf(signal, environment, lookup, (reason) => logger.warn('otlp_setting_ignored', { reason }))
    if (settings.traces === undefined) return
    const spans = spanExporter(settings.traces, { httpAgentOptions: this.#agentOf('TRACES') })
    const exporter = new ReportedSpans(spans, new OutageLog(logger, 'traces'))
    this.#traces = new BasicTracerProvider({
      resource: this.#resource,
      spanProcessors: [new BatchSpanProcessor(exporter)],
    })
    this.tracer = new SpanTracer(this.#traces.getTracer(SCOPE.name, SCOPE.version))
  }

  bind({ figures }: ExportDeps): void {
    this.#figures = figures
  }

  async start(): Promise<void> {
    const { metrics, metricIntervalMs, metricTimeoutMs } = this.#settings
    if (metrics === undefined || this.#figures === undefined) return
    const exporter = metricExporter(metrics, { httpAgentOptions: this.#agentOf('METRICS') })
    reportMetrics(exporter, new OutageLog(this.#logger, 'metrics'))
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: metricIntervalMs,
      exportTimeoutMillis: metricTimeoutMs,
      metricProducers: [new FigureProducer(this.#figures)],
    })
    this.#metrics = new MeterProvider({ resource: this.#resource, readers: [reader] })
  }

  async stop(graceMs = FLUSH_MS): Promise<void> {
    let timer: Timer | undefined
    const late = new Promise<void>((resolve) => (timer = systemClock.after(Math.min(graceMs, FLUSH_MS), resolve)))
    // The exporter has logged a failure.
    await Promise.race([late, Promise.allSettled([this.#traces?.shutdown(), this.#metrics?.shutdown()])])
    timer?.cancel()
  }
}

/** `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence over Homeport's own attributes. */
function resourceOfProcess(): Resource {
  const own = resourceFromAttributes({
    'service.name': SCOPE.name,
    'service.version': SCOPE.version,
    'service.instance.id': randomUUID(),
  })
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }))
}

interface Transport {
  readonly httpAgentOptions: Agent
}

const spanExporter = (protocol: Protocol, transport: Transport): SpanExporter =>
  protocol === 'http/json' ? new JsonTraces(transport) : new ProtobufTraces(transport)

const metricExporter = (protocol: Protocol, transport: Transport): PushMetricExporter =>
  protocol === 'http/json' ? new JsonMetrics(transport) : new ProtobufMetrics(transport)

/** Passes spans on, and notes the outcome. */
class ReportedSpans implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #outages: OutageLog

  constructor(exporter: SpanExporter, outages: OutageLog) {
    this.#exporter = exporter
    this.#outages = outages
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#outages.note(failureOf(result))
      // Reported already.
      done({ code: ExportResultCode.SUCCESS })
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.()
  }
}

/** Notes the outcome of each export of metrics. The exporter also chooses how the reader aggregates, so it is not wrapped. */
function reportMetrics(exporter: PushMetricExporter, outages: OutageLog): void {
  const send = exporter.export.bind(exporter)
  exporter.export = (metrics: ResourceMetrics, done: (result: ExportResult) => void): void =>
    send(metrics, (result) => {
      outages.note(failureOf(result))
      done({ code: ExportResultCode.SUCCESS })
    })
}

function failureOf({ code, error }: ExportResult): Error | undefined {
  return code === ExportResultCode.SUCCESS ? undefined : (error ?? new Error('the export failed'))
}
