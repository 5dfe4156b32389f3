import { onResponseOver, REQUEST_ID_HEADER } from '../../http/index.js'
import type { GatewayLogger } from '../deps.js'
import type { Exchange } from './exchange.js'
import { routeOf, splitTarget } from './parse-commands.js'

/**
 * Logs a request of the REST data plane once its answer is over. Paths contain commands, keys and values, so they are
 * not logged. The id becomes a header of the request, so that a successful answer repeats it as well.
 */
export function logAccess(exchange: Exchange, logger: Pick<GatewayLogger, 'info'>): void {
  const { request, response, requestId } = exchange
  const { method = '', url = '/' } = request
  const path = routeOf(splitTarget(url).path)
  const startedAt = performance.now()
  request.headers = { ...request.headers, [REQUEST_ID_HEADER]: requestId }
  onResponseOver(request, response, () => {
    logger.info('request_access', {
      requestId,
      service: 'rest',
      method,
      path,
      status: response.statusCode,
      durationMs: Math.round((performance.now() - startedAt) * 10) / 10,
      databaseId: exchange.owner || undefined,
    })
  })
}
