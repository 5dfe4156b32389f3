import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  type Administration,
  type AdministrationRequest,
  type ClientCounts,
  type GatewayLogger,
  type MadeReply,
  OBSERVER,
} from '../deps.js'
import type { Lanes } from '../engine/lanes.js'
import { errorText } from '../error-text.js'
import { askOver } from '../limits/engine-questions.js'
import { elementsOf } from '../resp/elements.js'
import {
  encodeArray,
  encodeBulk,
  encodeCommand,
  encodeError,
  encodeInteger,
  encodeMap,
  encodeNull,
  encodeSet,
  encodeSimple,
} from '../resp/encode.js'
import { findRow } from './command-table.js'
import { helpReply } from './help.js'

/** The collaborators of commands about the database and its engine. */
export interface AdministrationDeps {
  readonly administration: Administration
  readonly lanes: Pick<Lanes, 'shared'>
  readonly clock: Clock
  readonly logger: GatewayLogger
}

/** SLOWLOG shows this in place of a client's address, because an engine sees only the sockets of the gateway. */
const NO_ADDRESS = '0.0.0.0:0'
/** Commands that Homeport itself sends to engines and no client can. SLOWLOG leaves them out. */
const INTERNAL_COMMANDS = new Set([
  'ACL',
  'AUTH',
  'CONFIG',
  'HELLO',
  'PSYNC',
  'REPLCONF',
  'REPLICAOF',
  'RESET',
  'SHUTDOWN',
])

/**
 * Answers a command about the database (ACL, CONFIG) or about its engine (INFO, SLOWLOG …), in a version of the protocol.
 * INFO shows `counts`. Never rejects. `requestId` is called if a fault is logged; absent on the Redis protocol.
 */
export async function administer(
  deps: AdministrationDeps,
  request: AdministrationRequest,
  protocol: 2 | 3,
  counts: ClientCounts,
  requestId?: () => string,
): Promise<Buffer> {
  const help = helpReply(request.name)
  if (help) return help
  try {
    if (findRow(request.name)?.state === 'observed') return await observe(deps, request, protocol, counts)
    return encodeMadeReply(await deps.administration.run(request), protocol)
  } catch (error) {
    return encodeError(errorText(error instanceof HomeportError ? error : internal(deps, error, requestId?.())))
  }
}

function internal({ clock, logger }: AdministrationDeps, error: unknown, requestId?: string): HomeportError {
  const reference = Math.floor(clock.now()).toString(36)
  logger.error('gateway_command_failed', { error, reference, requestId })
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
    case 'set':
      return encodeSet(
        protocol,
        reply.items.map((item) => encodeMadeReply(item, protocol)),
      )
    case 'map':
      return encodeMap(
        protocol,
        reply.entries.map(([key, value]) => [encodeBulk(key), encodeMadeReply(value, protocol)]),
      )
  }
}

/** The administration of a gateway whose databases have neither settings nor users of their own. */
export const NO_ADMINISTRATION: Administration = {
  run: ({ name }) => Promise.reject(new HomeportError('command_not_available', { name: name.replace('|', ' ') })),
  refusalToAsk: () => undefined,
}

/** Asks the engine on behalf of a client, as the gateway's own user, and removes details of the host from the reply. */
async function observe(
  { administration, lanes }: AdministrationDeps,
  request: AdministrationRequest,
  protocol: 2 | 3,
  counts: ClientCounts,
): Promise<Buffer> {
  const { databaseId, name, args } = request
  const refusal = administration.refusalToAsk(request) ?? refusalOfInternalUser(name, args)
  if (refusal) throw refusal
  const ask = askOver(lanes.shared({ databaseId, user: OBSERVER, protocol }))
  return filterReply(name, args, counts, await ask(encodeCommand([...name.split('|'), ...args])))
}

/** Hides Homeport's own users in the engine: for clients they do not exist. */
function refusalOfInternalUser(name: string, [user = '']: readonly string[]): HomeportError | undefined {
  if (name !== 'ACL|DRYRUN' || !user.startsWith('homeport-')) return undefined
  return new HomeportError('command_malformed', { problem: `User '${user.slice(0, 64)}' not found` })
}

function filterReply(name: string, args: readonly string[], counts: ClientCounts, reply: Buffer): Buffer {
  if (name === 'INFO') return filterInfoReply(reply, args[0], counts)
  if (name === 'ROLE') return withoutReplicas(reply)
  return name === 'SLOWLOG' && args[0]?.toUpperCase() === 'GET' ? filterSlowLog(reply) : reply
}

/** The last element of a primary's reply lists the addresses of its replicas. */
function withoutReplicas(reply: Buffer): Buffer {
  const [role, offset, ...rest] = elementsOf(reply) ?? []
  return role && offset && rest.length === 1 ? encodeArray([role, offset, encodeArray([])]) : reply
}

/** An entry is `[number, time, microseconds, command, address, name]`. */
function filterSlowLog(reply: Buffer): Buffer {
  const entries = elementsOf(reply)
  if (!entries) return reply
  const shown = entries.flatMap((entry) => {
    const [number, time, took, command, , ...rest] = elementsOf(entry) ?? []
    if (!number || !time || !took || !command || isInternal(command)) return []
    return [encodeArray([number, time, took, command, encodeBulk(NO_ADDRESS), ...rest])]
  })
  return encodeArray(shown)
}

function isInternal(command: Buffer): boolean {
  const [name] = elementsOf(command) ?? []
  const text = name?.toString('latin1').split('\r\n')[1] ?? ''
  return INTERNAL_COMMANDS.has(text.toUpperCase())
}

/** Lines of INFO about the host and its files. */
const HIDDEN = new Set([
  'atomicvar_api',
  'config_file',
  'executable',
  'gcc_version',
  'io_threads_active',
  'master_host',
  'master_port',
  'monotonic_clock',
  'multiplexing_api',
  'os',
  'process_id',
  'process_supervised',
  'tcp_port',
])
/** Addresses of replicas, and, in newer engines, of every socket that the engine listens on. */
const ADDRESS_LINE = /^(slave|listener)\d+:/
const NUMBER_LINE = /^(connected_clients|blocked_clients):(\d+)$/

/** Removes the host's details from the text of INFO, and replaces the engine's numbers of clients by the gateway's. */
export function filterInfo(text: string, counts?: ClientCounts): string {
  return text
    .split('\r\n')
    .filter((line) => !HIDDEN.has(line.slice(0, line.indexOf(':'))) && !ADDRESS_LINE.test(line))
    .map((line) => (counts ? withCounts(line, counts) : line))
    .join('\r\n')
}

function withCounts(line: string, { connected, held }: ClientCounts): string {
  const [, field, number] = NUMBER_LINE.exec(line) ?? []
  if (field === undefined) return line
  return `${field}:${field === 'connected_clients' ? connected : Number(number) + held}`
}

const BULK = /^\$\d+\r\n([\s\S]*)\r\n$/
const VERBATIM = /^=\d+\r\ntxt:([\s\S]*)\r\n$/

/**
 * Filters a whole reply to INFO, in either protocol version. Errors pass unchanged. The reply for a section that no
 * engine has is its heading without lines (reference redis 3.6).
 */
function filterInfoReply(reply: Buffer, section: string | undefined, counts?: ClientCounts): Buffer {
  const text = reply.toString()
  const filtered = (found: string): string => (found === '' && section ? heading(section) : filterInfo(found, counts))
  const bulk = BULK.exec(text)?.[1]
  if (bulk !== undefined) return framed('$', filtered(bulk))
  const verbatim = VERBATIM.exec(text)?.[1]
  return verbatim === undefined ? reply : framed('=', `txt:${filtered(verbatim)}`)
}

function heading(section: string): string {
  const name = section.slice(0, 64).replace(/[\r\n]/g, ' ')
  return `# ${name.slice(0, 1).toUpperCase()}${name.slice(1).toLowerCase()}\r\n`
}

function framed(type: string, text: string): Buffer {
  return Buffer.from(`${type}${Buffer.byteLength(text)}\r\n${text}\r\n`)
}
