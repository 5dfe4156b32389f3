import { isHttpUrl } from './text.js'

/** A signal of OpenTelemetry that Homeport exports. */
export type Signal = 'TRACES' | 'METRICS'

/** The encodings that Homeport can send. */
export type Protocol = 'http/protobuf' | 'http/json'

/** The settings in the environment. The SDK itself reads headers, samplers, timeouts and limits from there. */
export interface ExportSettings {
  /** Encoding of traces; `undefined` while traces are off. */
  readonly traces: Protocol | undefined
  readonly metrics: Protocol | undefined
  /** Time between two exports of metrics. */
  readonly metricIntervalMs: number
  readonly metricTimeoutMs: number
  /** One sentence for each wrong setting. These settings are ignored. */
  readonly problems: readonly string[]
}

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

const METRIC_INTERVAL_MS = 60_000
const METRIC_TIMEOUT_MS = 30_000
const SAMPLERS: ReadonlySet<string> = new Set(
  ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]),
)

/** Reads the standard variables of OpenTelemetry. Everything is off unless one of them names an endpoint. */
export function exportSettings(environment: Environment): ExportSettings {
  const reader = new Reader(environment)
  const isDisabled = reader.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true'
  const traces = isDisabled ? undefined : reader.protocol('TRACES')
  const metrics = isDisabled ? undefined : reader.protocol('METRICS')
  if (traces) reader.checkSampler()
  const metricIntervalMs = reader.milliseconds('OTEL_METRIC_EXPORT_INTERVAL', METRIC_INTERVAL_MS)
  const timeoutMs = reader.milliseconds('OTEL_METRIC_EXPORT_TIMEOUT', METRIC_TIMEOUT_MS)
  const metricTimeoutMs = Math.min(timeoutMs, metricIntervalMs)
  return { traces, metrics, metricIntervalMs, metricTimeoutMs, problems: reader.problems }
}

class Reader {
  readonly problems: string[] = []
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** The value of a variable. An empty one counts as unset, as the specification says. */
  text(name: string): string | undefined {
    const value = this.#environment[name]?.trim()
    return value === '' ? undefined : value
  }

  milliseconds(name: string, otherwise: number): number {
    const text = this.text(name)
    if (text === undefined) return otherwise
    const value = Number(text)
    if (Number.isSafeInteger(value) && value > 0 && value < 2 ** 31) return value
    this.problems.push(
      `${name} is ${JSON.stringify(text.slice(0, 80))}; send whole milliseconds. ${otherwise} is used.`,
    )
    return otherwise
  }

  /** The encoding of a signal; `undefined` if it is off or cannot be sent. */
  protocol(signal: Signal): Protocol | undefined {
    if (this.text(`OTEL_${signal}_EXPORTER`) === 'none' || !this.#hasEndpoint(signal)) return undefined
    const name = `OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`
    const found = this.text(name) ?? this.text('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf'
    if (found === 'http/protobuf' || found === 'http/json') return found
    this.problems.push(
      `${name} or OTEL_EXPORTER_OTLP_PROTOCOL is ${JSON.stringify(found.slice(0, 80))}, which Homeport cannot send, so ${signal.toLowerCase()} are off. Set http/protobuf or http/json, and the endpoint of your collector for OTLP over HTTP (port 4318 by default).`,
    )
    return undefined
  }

  #hasEndpoint(signal: Signal): boolean {
    const own = `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`
    const name = this.text(own) === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : own
    const url = this.text(name)
    if (url === undefined || isHttpUrl(url)) return url !== undefined
    // The value is not repeated: it may contain credentials.
    this.problems.push(`${name} is not a URL with http:// or https://, so ${signal.toLowerCase()} are off.`)
    return false
  }

  checkSampler(): void {
    const found = this.text('OTEL_TRACES_SAMPLER')
    if (found === undefined || SAMPLERS.has(found)) return
    const known = [...SAMPLERS].join(', ')
    this.problems.push(
      `OTEL_TRACES_SAMPLER is ${JSON.stringify(found.slice(0, 80))}, so parentbased_always_on is used. Known are: ${known}.`,
    )
  }
}
