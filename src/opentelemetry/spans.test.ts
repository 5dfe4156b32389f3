import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { expect, it } from 'vitest'
import { SpanTracer } from './spans.js'

it('a request that another node answers has a span of each node, one the child of the other', () => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = new SpanTracer(provider.getTracer('test'))
  const traceId = 'a'.repeat(32)
  const parent = { traceparent: `00-${traceId}-${'b'.repeat(16)}-01` }
  const request = { service: 'rest', requestId: 'mine', method: 'GET', route: '/{command}', status: 200, durationMs: 5 }

  const passed = tracer.passed(parent, 2)
  tracer.answered({ ...request, parent: passed.context, databaseId: 'db' })
  passed.answered({ ...request, parent })

  const [child, own] = exporter.getFinishedSpans()
  expect(own?.spanContext().traceId).toBe(traceId)
  expect(own?.parentSpanContext?.spanId).toBe('b'.repeat(16))
  expect(child?.parentSpanContext?.spanId).toBe(own?.spanContext().spanId)
  expect([own?.name, child?.name]).toEqual(['GET /{command}', 'GET /{command}'])
  expect(own?.attributes).not.toHaveProperty(['homeport.database.id'])
  expect(child?.attributes).toMatchObject({ 'homeport.database.id': 'db', 'http.response.status_code': 200 })
})
