import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import type { AnsweredTrace, ReceivedTrace, Tracer } from '../../telemetry/index.js'
import type { Exchange } from './exchange.js'
import { traceExchange } from './traced-request.js'

/** Answers one request with a trace context, after `nodes` other nodes were asked one after the other. */
function traced(nodes: number) {
  const reported: string[] = []
  const note = (what: string) => (request: AnsweredTrace) => void reported.push(`${what} ${request.parent.traceparent}`)
  const passed = (parent: ReceivedTrace) => {
    reported.push(`begun ${parent.traceparent}`)
    return { context: { traceparent: 'own' }, answered: note('passed') }
  }
  const response = Object.assign(new EventEmitter(), { statusCode: 200 })
  const request = { headers: { traceparent: 'client' }, method: 'GET' }
  const exchange = { request, response, owner: '' } as unknown as Exchange
  traceExchange({ passed, answered: note('answered') } as unknown as Tracer, exchange, '/get/k')
  const contexts = Array.from({ length: nodes }, () => exchange.traceForNode())
  response.emit('close')
  return { reported, contexts }
}

it('a request that is passed to other nodes has one span, whose context these nodes get', () => {
  expect(traced(0)).toEqual({ reported: ['answered client'], contexts: [] })
  const own = { traceparent: 'own' }
  expect(traced(2)).toEqual({ reported: ['begun client', 'passed client'], contexts: [own, own] })
})

it.each([
  ['/', '/'],
  ['/pipeline', '/pipeline'],
  ['/multi-exec/', '/multi-exec'],
  ['/get/k', '/{command}'],
  ['/pipeline/k', '/{command}'],
])('the span of a request to %s has the route %s', (path, route) => {
  const routes: string[] = []
  const answered = (request: AnsweredTrace) => void routes.push(request.route)
  const response = Object.assign(new EventEmitter(), { statusCode: 200 })
  const request = { headers: { traceparent: 'client' }, method: 'GET' }
  traceExchange({ answered } as unknown as Tracer, { request, response, owner: '' } as unknown as Exchange, path)
  response.emit('close')
  expect(routes).toEqual([route])
})
