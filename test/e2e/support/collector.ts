import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { waitFor } from '../../support/index.js'

/** The parts of OTLP as JSON that tests read. */
interface WireValue {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
  readonly arrayValue?: { readonly values: readonly WireValue[] }
}

interface WireAttribute {
  readonly key: string
  readonly value: WireValue
}

interface WireSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly WireAttribute[]
  readonly events?: readonly { readonly name: string }[]
  readonly status?: { readonly code?: number }
}

interface WireResource {
  readonly attributes: readonly WireAttribute[]
}

interface WireTraces {
  readonly resourceSpans: readonly {
    readonly resource: WireResource
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[]
  }[]
}

/** A metric as the collector gets it. */
export interface SeenMetric {
  readonly name: string
  readonly unit: string
  readonly description: string
  readonly sum?: { readonly isMonotonic: boolean; readonly dataPoints: readonly SeenPoint[] }
  readonly gauge?: { readonly dataPoints: readonly SeenPoint[] }
  readonly histogram?: { readonly dataPoints: readonly SeenPoint[] }
}

/** One value of a metric. */
export interface SeenPoint {
  readonly attributes: readonly WireAttribute[]
  readonly asDouble?: number
  readonly count?: number | string
  readonly sum?: number
  readonly bucketCounts?: readonly (number | string)[]
  readonly explicitBounds?: readonly number[]
}

interface WireMetrics {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly SeenMetric[] }[]
  }[]
}

/** A span as the collector gets it. */
export interface SeenSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the root of a trace. */
  readonly parentSpanId: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: readonly string[]
  readonly failed: boolean
}

const KINDS = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const
const FAILED = 2

/** A receiver of OTLP over HTTP. It keeps what it gets as JSON, and the bytes of protobuf. */
export interface Collector {
  readonly url: string
  readonly spans: readonly SeenSpan[]
  /** The newest state of each metric. */
  readonly metrics: ReadonlyMap<string, SeenMetric>
  readonly resource: Readonly<Record<string, unknown>>
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[]
  /** The status of the next answers; `silent`: none. */
  answer: number | 'silent'
  /** Waits for this many spans of a trace. */
  trace(traceId: string, count: number): Promise<readonly SeenSpan[]>
  close(): Promise<void>
}

/** Starts a collector on a free port. */
export async function startCollector(): Promise<Collector> {
  const spans: SeenSpan[] = []
  const metrics = new Map<string, SeenMetric>()
  const requests: Collector['requests'][number][] = []
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      requests.push({ path: request.url ?? '', headers: request.headers, body })
      if (collector.answer === 'silent') return
      if (collector.answer === 200 && request.headers['content-type'] === 'application/json') take(request.url, body)
      response.writeHead(collector.answer, { 'content-type': request.headers['content-type'] ?? '' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const collector = {
    url: `http://127.0.0.1:${port}`,
    spans,
    metrics,
    requests,
    resource: {} as Readonly<Record<string, unknown>>,
    answer: 200 as number | 'silent',
    trace: (traceId: string, count: number) =>
      waitFor(
        () => {
          const found = spans.filter((span) => span.traceId === traceId)
          return found.length >= count && found
        },
        { what: `${count} spans of the trace ${traceId}` },
      ),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  function take(path: string | undefined, body: Buffer): void {
    if (path === '/v1/traces') {
      const { resourceSpans } = JSON.parse(body.toString()) as WireTraces
      for (const { resource, scopeSpans } of resourceSpans) {
        collector.resource = valuesOf(resource.attributes)
        spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(seen)))
      }
    } else if (path === '/v1/metrics') {
      const { resourceMetrics } = JSON.parse(body.toString()) as WireMetrics
      const all = resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      for (const metric of all) metrics.set(metric.name, metric)
    }
  }
  return collector
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function seen({ traceId, spanId, parentSpanId = '', name, kind, attributes, events = [], status }: WireSpan): SeenSpan {
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    kind: KINDS[kind] ?? 'internal',
    attributes: valuesOf(attributes),
    events: events.map((event) => event.name),
    failed: status?.code === FAILED,
  }
}

/** Attributes as a plain object. */
export const valuesOf = (attributes: readonly WireAttribute[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, plainOf(value)]))

function plainOf({ stringValue, intValue, doubleValue, boolValue, arrayValue }: WireValue): unknown {
  if (arrayValue) return arrayValue.values.map(plainOf)
  return stringValue ?? doubleValue ?? boolValue ?? (intValue === undefined ? undefined : Number(intValue))
}

/** The tree of a trace as indented names, children in the order of their names. */
export function treeOf(spans: readonly SeenSpan[], parent: string, depth = 0): readonly string[] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .sort((one, other) => one.name.localeCompare(other.name))
    .flatMap((span) => [`${'  '.repeat(depth)}${span.name}`, ...treeOf(spans, span.spanId, depth + 1)])
}
