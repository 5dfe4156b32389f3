import { randomBytes } from 'node:crypto'
import type { WorkflowContext } from '@upstash/workflow'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { METRICS } from '../../src/contract/metrics/metrics.js'
import { type Received, type Sink, startSink } from '../../src/queue/testing/sink.js'
import { type App, type AppRoutes, startApp } from '../../src/workflow/testing/harness.js'
import { atCleanup, startHomeport, waitFor } from '../support/index.js'
import {
  type Collector,
  type SeenMetric,
  type SeenSpan,
  startCollector,
  treeOf,
  valuesOf,
} from './support/collector.js'
import { createDatabase, useService } from './support/service.js'

/** Traces and metrics as a collector gets them from a server that is used with the official clients. */

const env: Record<string, string> = {
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=team-1',
  OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_METRIC_EXPORT_INTERVAL: '300',
}
let collector: Collector
let sink: Sink
const apps: App[] = []

beforeAll(async () => {
  collector = await startCollector()
  atCleanup(() => collector.close())
  env.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url
  sink = await startSink()
  atCleanup(() => sink.close())
})

const service = useService({ env })

beforeEach(() => {
  sink.received.length = 0
  sink.answer = () => ({})
})

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
})

async function host(routes: AppRoutes): Promise<App> {
  const app = await startApp(service.app, routes)
  apps.push(app)
  return app
}

/** The trace context of a caller. */
function caller(flags: '00' | '01' = '01') {
  const traceId = randomBytes(16).toString('hex')
  const spanId = randomBytes(8).toString('hex')
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` }
}

const arrivedAt = (target: string, count = 1): Promise<readonly Received[]> =>
  waitFor(
    () => {
      const found = sink.received.filter((request) => request.target === target)
      return found.length >= count && found
    },
    { what: `${count} deliveries to ${target}` },
  )

const contextOf = (request: Received | undefined) => {
  const [, traceId, spanId, flags] = String(request?.headers.traceparent).split('-')
  return { traceId, spanId, flags }
}

describe('traces of the queue', () => {
  it('are one tree from the caller over the publication and the delivery to the callback', async () => {
    const { traceId, spanId, traceparent } = caller()
    const { messageId } = await service.queue.publishJSON({
      url: `${sink.url}/work?key=secret`,
      body: { secret: 'payload' },
      callback: `${sink.url}/callback`,
      headers: { traceparent, tracestate: 'vendor=1' },
    })
    const spans = await collector.trace(traceId, 4)
    expect(treeOf(spans, spanId)).toEqual([
      'publish 127.0.0.1',
      '  deliver 127.0.0.1',
      '    callback 127.0.0.1',
      '      deliver 127.0.0.1',
    ])
    const [work] = await arrivedAt('/work?key=secret')
    const [callback] = await arrivedAt('/callback')
    const byId = new Map(spans.map((span) => [span.spanId, span]))
    const delivery = byId.get(contextOf(work).spanId ?? '')
    expect(contextOf(work)).toMatchObject({ traceId, flags: '01' })
    expect(work?.headers.tracestate).toBe('vendor=1')
    expect(delivery).toMatchObject({ kind: 'client', failed: false })
    expect(delivery?.attributes).toMatchObject({
      'messaging.system': 'homeport',
      'messaging.message.id': messageId,
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'url.full': `${sink.url}/work`,
      'homeport.delivery.attempt': 1,
      'homeport.delivery.outcome': 'delivered',
    })
    expect(byId.get(contextOf(callback).spanId ?? '')?.attributes['url.full']).toBe(`${sink.url}/callback`)
    const publication = spans.find(({ parentSpanId }) => parentSpanId === spanId)
    expect(publication).toMatchObject({ kind: 'producer', attributes: { 'messaging.message.id': messageId } })
    expect(publication?.attributes['homeport.request.id']).toMatch(/./)
    expect(JSON.stringify(spans)).not.toMatch(/secret|payload/)
  })

  it('name each attempt, the dead letter and the failure callback', async () => {
    sink.answer = ({ target }) => (target === '/broken' ? { status: 500 } : {})
    const { traceId, spanId, traceparent } = caller()
    await service.homeport.queue('POST', `/v2/publish/${sink.url}/broken`, 'x', {
      traceparent,
      'x-request-id': 'request-17',
      'Upstash-Retries': '1',
      'Upstash-Retry-Delay': '1',
      'Upstash-Failure-Callback': `${sink.url}/failed`,
    })
    const spans = await collector.trace(traceId, 5)
    expect(treeOf(spans, spanId)).toEqual([
      'publish 127.0.0.1',
      '  deliver 127.0.0.1',
      '  deliver 127.0.0.1',
      '    failure_callback 127.0.0.1',
      '      deliver 127.0.0.1',
    ])
    const attempts = spans.filter(({ attributes }) => attributes['url.full'] === `${sink.url}/broken`)
    expect(attempts.map(({ failed, events, attributes }) => [failed, events, attributes['error.type']])).toEqual([
      [true, ['retry'], '500'],
      [true, ['dead letter'], '500'],
    ])
    expect(attempts.map(({ attributes }) => attributes['homeport.delivery.attempt'])).toEqual([1, 2])
    expect(spans.find(({ kind }) => kind === 'producer')?.attributes['homeport.request.id']).toBe('request-17')
  })

  it('keep their parent over a restart of the server', async () => {
    const { traceId, spanId, traceparent } = caller()
    await service.queue.publish({ url: `${sink.url}/later`, delay: 1, headers: { traceparent } })
    const third = { url: `${sink.url}/called`, method: 'POST' } as const
    const app = await host({ '/late': { route: async (context) => void (await context.call('third', third)) } })
    const ofRun = caller()
    const headers = { traceparent: ofRun.traceparent }
    await service.workflow.trigger({ url: `${app.url}/late`, delay: 1, headers })
    await service.restart('SIGTERM')
    await arrivedAt('/later')
    const [called] = await arrivedAt('/called')
    expect(contextOf(called).traceId).toBe(ofRun.traceId)
    const spans = await collector.trace(traceId, 2)
    expect(treeOf(spans, spanId)).toEqual(['publish 127.0.0.1', '  deliver 127.0.0.1'])
  })

  it('export nothing for a caller whose trace is not sampled, and pass its decision on', async () => {
    const unsampled = caller('00')
    const sampled = caller()
    const publish = (traceparent: string, path: string) =>
      service.queue.publish({ url: `${sink.url}${path}`, headers: { traceparent } })
    await publish(unsampled.traceparent, '/quiet')
    const [quiet] = await arrivedAt('/quiet')
    expect(contextOf(quiet)).toMatchObject({ traceId: unsampled.traceId, flags: '00' })
    await publish(sampled.traceparent, '/after')
    await collector.trace(sampled.traceId, 2)
    expect(collector.spans.filter((span) => span.traceId === unsampled.traceId)).toEqual([])
  })

  it('have a span for other requests of the API, but none for strangers', async () => {
    const { traceId, spanId, traceparent } = caller()
    const stranger = { authorization: 'Bearer wrong', traceparent }
    expect((await fetch(`${service.homeport.queueUrl}/v2/schedules`, { headers: stranger })).status).toBe(401)
    await service.homeport.queue('GET', '/v2/schedules', undefined, { traceparent })
    const spans = await collector.trace(traceId, 1)
    expect(spans).toMatchObject([{ name: 'GET /v2/schedules', kind: 'server', parentSpanId: spanId }])
    expect(spans[0]?.attributes['http.response.status_code']).toBe(200)
  })
})

describe('traces of databases', () => {
  it('continue that of a REST request, and show neither keys nor values', async () => {
    const database = await createDatabase(service)
    const { traceId, spanId, traceparent } = caller()
    const ask = (path: string, headers: Record<string, string> = {}) =>
      fetch(`${database.rest_url}${path}`, { headers: { authorization: `Bearer ${database.rest_token}`, ...headers } })
    await ask('/set/hidden-untraced/value')
    const answer = await ask('/set/hidden-key/hidden-value', { traceparent, 'x-request-id': 'rest-1' })
    expect([answer.status, await answer.json()]).toEqual([200, { result: 'OK' }])
    // A node that passes the request on has a span as well, and does not know the database.
    const ofHome = async () =>
      (await collector.trace(traceId, 1)).find(({ attributes }) => attributes['homeport.database.id'] !== undefined)
    expect(await waitFor(ofHome, { what: 'the span of the node that answers' })).toMatchObject({
      name: 'GET /{command}',
      kind: 'server',
      parentSpanId: spanId,
      attributes: {
        'http.response.status_code': 200,
        'homeport.database.id': database.database_id,
        'homeport.request.id': 'rest-1',
      },
    })
    expect(JSON.stringify(collector.spans)).not.toMatch(/hidden/)
  })
})

describe('traces of workflows', () => {
  it('are one tree from the trigger to each step and to a third party', async () => {
    const app = await host({
      '/order': {
        route: async (context: WorkflowContext<unknown>) => {
          const one = await context.run('one', () => 1)
          await context.call('third', { url: `${sink.url}/third`, method: 'POST', body: String(one) })
          return await context.run('two', () => one + 1)
        },
      },
    })
    const { traceId, spanId, traceparent } = caller()
    const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/order`, headers: { traceparent } })
    await waitFor(
      async () => {
        const { runs } = await service.workflow.logs({ workflowRunId })
        return runs[0]?.workflowState === 'RUN_SUCCESS'
      },
      { what: 'the end of the run' },
    )
    const roleOf = ({ attributes }: SeenSpan) => attributes['homeport.workflow.delivery']
    // In a cluster, several nodes export them, in no certain order.
    const hasCall = async () => (await collector.trace(traceId, 6)).some((span) => roleOf(span) === 'call')
    await waitFor(hasCall, { what: 'the span of the call' })
    const spans = await collector.trace(traceId, 6)
    const [trigger, ...others] = treeOf(spans, spanId)
    expect(trigger).toBe('trigger 127.0.0.1')
    expect(new Set(others)).toEqual(new Set(['  deliver 127.0.0.1']))
    expect(spans.find(({ kind }) => kind === 'producer')?.attributes['homeport.workflow.run_id']).toBe(workflowRunId)
    const [third] = await arrivedAt('/third')
    expect(contextOf(third).traceId).toBe(traceId)
  })
})

const pointsOf = ({ sum, gauge, histogram }: SeenMetric) => (sum ?? gauge ?? histogram)?.dataPoints ?? []

describe('metrics', () => {
  it('are those of the page for Prometheus, with their kinds, labels and values', async () => {
    await service.queue.publish({ url: `${sink.url}/counted` })
    await arrivedAt('/counted')
    const page = async () => String((await service.homeport.api('GET', '/metrics')).body)
    const names = async () => [...(await page()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '']) => name)
    const wanted = await names()
    await waitFor(() => wanted.every((name) => collector.metrics.has(name)), { what: 'all metrics' })
    const delivered = () => {
      const points = pointsOf(collector.metrics.get('homeport_queue_deliveries_total') as SeenMetric)
      return points.find(({ attributes }) => valuesOf(attributes).outcome === 'delivered')?.asDouble
    }
    const ofPage = async () => Number(/deliveries_total\{outcome="delivered"\} (\d+)/.exec(await page())?.[1])
    await waitFor(async () => delivered() === (await ofPage()), { what: 'the newest count' })
    for (const [name, { kind, help }] of Object.entries(METRICS)) {
      const metric = collector.metrics.get(name)
      if (!metric) continue
      expect(metric.description).toBe(help)
      if (kind === 'counter') expect(metric.sum?.isMonotonic).toBe(true)
      else expect(Object.keys(metric)).toContain(kind)
    }
    const duration = collector.metrics.get('homeport_queue_delivery_duration_seconds')
    const [point] = pointsOf(duration as SeenMetric)
    expect(duration?.unit).toBe('s')
    expect(point?.bucketCounts).toHaveLength((point?.explicitBounds?.length ?? 0) + 1)
    expect(point?.bucketCounts?.reduce((all: number, one) => all + Number(one), 0)).toBe(Number(point?.count))
    expect(collector.resource).toMatchObject({
      'service.name': 'homeport',
      'service.version': expect.any(String),
      'deployment.environment.name': 'test',
    })
    expect(collector.requests.every(({ headers }) => headers['x-tenant'] === 'team-1')).toBe(true)
  })
})

describe('a collector that is down or silent', () => {
  it('neither slows nor stops the service, and is logged once', async () => {
    const silent = await startCollector()
    silent.answer = 'silent'
    const down = await startCollector()
    await down.close()
    const homeport = await startHomeport({
      env: {
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${down.url}/v1/traces`,
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${silent.url}/v1/metrics`,
        OTEL_BSP_SCHEDULE_DELAY: '20',
        OTEL_METRIC_EXPORT_INTERVAL: '100',
        OTEL_EXPORTER_OTLP_TIMEOUT: '300',
      },
    })
    const count = (text: RegExp) => homeport.logs().match(text)?.length ?? 0
    for (const index of Array(20).keys()) {
      const { status } = await homeport.queue('POST', `/v2/publish/${sink.url}/unobserved?${index}`, 'x')
      expect(status).toBe(200)
    }
    await waitFor(() => sink.received.length >= 20, { what: 'all deliveries' })
    await waitFor(() => count(/traces cannot be exported/g) > 0, { what: 'the notice about traces' })
    await waitFor(() => count(/metrics cannot be exported/g) > 0, { what: 'the notice about metrics' })
    await waitFor(() => silent.requests.length > 3, { what: 'further exports' })
    // As protobuf, which is the standard's default.
    expect(silent.requests[0]?.headers['content-type']).toBe('application/x-protobuf')
    expect(silent.requests[0]?.body.includes('homeport_queue_published_total')).toBe(true)
    expect(await homeport.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect([count(/traces cannot be exported/g), count(/metrics cannot be exported/g)]).toEqual([1, 1])
    await silent.close()
  })
})
