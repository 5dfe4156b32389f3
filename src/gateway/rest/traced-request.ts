import { givenRequestId } from '../../http/index.js'
import type { PassedSpan, Tracer } from '../../telemetry/index.js'
import type { Exchange } from './exchange.js'
import { routeOf } from './parse-commands.js'

/**
 * Reports a request that carries a trace context. Others are not traced: a trace for each command of a client that does not
 * use tracing would help nobody.
 */
export function traceExchange(tracer: Tracer, exchange: Exchange, path: string): void {
  const { request, response } = exchange
  const { traceparent, tracestate } = request.headers
  if (typeof traceparent !== 'string') return
  const startedAt = performance.now()
  const parent = { traceparent, ...(typeof tracestate === 'string' && { tracestate }) }
  let passed: PassedSpan | undefined
  exchange.traceForNode = () => {
    passed ??= tracer.passed(parent, performance.now() - startedAt)
    return passed.context
  }
  response.once('close', () => {
    const span = passed ?? tracer
    span.answered({
      service: 'rest',
      requestId: givenRequestId(request.headers),
      method: request.method ?? '',
      route: routeOf(path),
      status: response.statusCode,
      durationMs: performance.now() - startedAt,
      parent,
      databaseId: exchange.owner === '' ? undefined : exchange.owner,
    })
  })
}
