import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Administration, AdministrationRequest, GatewayLogger, MadeReply } from '../deps.js'
import { errorText } from '../error-text.js'
import {
  encodeArray,
  encodeBulk,
  encodeError,
  encodeInteger,
  encodeMap,
  encodeNull,
  encodeSimple,
} from '../resp/encode.js'
import { findRow } from './command-table.js'
import { helpReply } from './help.js'
import type { ClientCounts } from './info-filter.js'
import { type ObserverServices, observe } from './observe.js'

/** What commands about the database itself need of their surroundings. */
export interface AdministrationServices extends ObserverServices {
  readonly administration: Administration
  readonly clock: Clock
  readonly logger: GatewayLogger
}

/**
 * Answers a command about the database itself, or about its engine, in a version of the protocol. `counts`
 * of clients are those that INFO tells. Never rejects.
 */
export async function administer(
  services: AdministrationServices,
  request: AdministrationRequest,
  protocol: 2 | 3,
  counts: ClientCounts,
): Promise<Buffer> {
  const help = helpReply(request.name)
  if (help) return help
  try {
    if (findRow(request.name)?.state === 'observed') return await observe(services, request, protocol, counts)
    return encodeMadeReply(await services.administration.run(request), protocol)
  } catch (error) {
    return encodeError(errorText(error instanceof HomeportError ? error : internal(services, error)))
  }
}

function internal({ clock, logger }: AdministrationServices, error: unknown): HomeportError {
  const reference = Math.floor(clock.now()).toString(36)
  logger.error({ error, reference }, 'a command about a database failed')
  return new HomeportError('internal', { reference })
}

function encodeMadeReply(reply: MadeReply, protocol: 2 | 3): Buffer {
  switch (reply.kind) {
    case 'ok':
      return encodeSimple('OK')
    case 'text':
      return encodeBulk(reply.text)
    case 'number':
      return encodeInteger(reply.value)
    case 'nothing':
      return encodeNull(protocol)
    case 'list':
      return encodeArray(reply.items.map((item) => encodeMadeReply(item, protocol)))
    case 'map':
      return encodeMap(
        protocol,
        reply.entries.map(([key, value]) => [encodeBulk(key), encodeMadeReply(value, protocol)]),
      )
  }
}

/** For a gateway whose databases have neither users of their own nor settings. */
export const NO_ADMINISTRATION: Administration = {
  run: ({ name }) => Promise.reject(new HomeportError('command_not_available', { name: name.replace('|', ' ') })),
  refusalToAsk: () => undefined,
}
