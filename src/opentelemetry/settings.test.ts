import { describe, expect, it } from 'vitest'
import { exportSettings } from './settings.js'
import { destinationName, targetOf } from './text.js'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }

describe('the settings of an export', () => {
  it('are off without an endpoint, and with the variables that turn the export off', () => {
    for (const environment of [
      {},
      { OTEL_SERVICE_NAME: 'shop', OTEL_TRACES_SAMPLER: 'always_on' },
      { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
      { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' },
      { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' },
    ]) {
      expect(exportSettings(environment)).toMatchObject({ traces: undefined, metrics: undefined, problems: [] })
    }
  })

  it('apply to each signal separately', () => {
    expect(exportSettings(ENDPOINT)).toMatchObject({ traces: 'http/protobuf', metrics: 'http/protobuf' })
    expect(exportSettings({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://o.test/v1/traces' })).toMatchObject({
      traces: 'http/protobuf',
      metrics: undefined,
    })
    const own = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf' }
    expect(exportSettings({ ...ENDPOINT, ...own })).toMatchObject({ traces: 'http/json', metrics: 'http/protobuf' })
    const times = { OTEL_METRIC_EXPORT_INTERVAL: '500', OTEL_METRIC_EXPORT_TIMEOUT: '9000' }
    expect(exportSettings({ ...ENDPOINT, ...times })).toMatchObject({ metricIntervalMs: 500, metricTimeoutMs: 500 })
  })

  it('name wrong values without secrets, and ignore them', () => {
    const grpc = exportSettings({ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })
    expect(grpc).toMatchObject({ traces: undefined, metrics: undefined })
    expect(grpc.problems.join()).toMatch(/"grpc".*Set http\/protobuf or http\/json/)
    const wrong = exportSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: 'me:secret@collector:4317' })
    expect(wrong).toMatchObject({ traces: undefined, metrics: undefined })
    expect(wrong.problems.join()).toMatch(/OTEL_EXPORTER_OTLP_ENDPOINT is not a URL/)
    expect(wrong.problems.join()).not.toMatch(/secret/)
    const more = { OTEL_TRACES_SAMPLER: 'jaeger', OTEL_METRIC_EXPORT_INTERVAL: '1m' }
    expect(exportSettings({ ...ENDPOINT, ...more })).toMatchObject({
      traces: 'http/protobuf',
      metricIntervalMs: 60_000,
      problems: [expect.stringMatching(/"jaeger".*Known are/), expect.stringMatching(/"1m".*60000 is used/)],
    })
  })
})

describe('a destination', () => {
  it('is shown without credentials, query and fragment', () => {
    const url = 'https://me:pass@Shop.test:8443/orders?key=secret#part'
    const target = { url: 'https://shop.test:8443/orders', host: 'shop.test', port: 8443 }
    expect(targetOf(url)).toEqual(target)
    expect(targetOf(encodeURIComponent(url))).toEqual(target)
    expect(destinationName(url)).toBe('shop.test')
    expect(targetOf('http://127.0.0.1/')?.port).toBe(80)
  })

  it('may be a name, or anything else that is not a URL', () => {
    expect(targetOf('orders')).toBeUndefined()
    expect(destinationName('orders')).toBe('orders')
    expect(destinationName('api/llm?token=secret')).toBe('api')
    expect(destinationName('%')).toBe('%')
    expect(destinationName('x'.repeat(1_000))).toHaveLength(100)
  })
})
