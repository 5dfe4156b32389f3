import { HomeportError } from '../../contract/errors/errors.js'
import { type Administration, type AdministrationRequest, OBSERVER } from '../deps.js'
import type { Lanes } from '../engine/lanes.js'
import { errorText } from '../error-text.js'
import { askOver } from '../limits/engine-questions.js'
import { elementsOf } from '../resp/elements.js'
import { encodeArray, encodeBulk, encodeCommand, encodeError } from '../resp/encode.js'
import { type ClientCounts, filterInfoReply } from './info-filter.js'

/** What commands about the engine need of their surroundings. */
export interface ObserverServices {
  readonly administration: Pick<Administration, 'refusalToAsk'>
  readonly lanes: Pick<Lanes, 'shared'>
}

/** Where a command came from that the slow log remembers: engines see our own sockets only. */
const NO_ADDRESS = '0.0.0.0:0'
/** What Homeport sends to engines for itself, and no client can. */
const OURS = new Set(['ACL', 'AUTH', 'CONFIG', 'HELLO', 'PSYNC', 'REPLCONF', 'REPLICAOF', 'RESET', 'SHUTDOWN'])

/**
 * Asks the engine about itself in the place of a client, behind everything that the client was answered, and leaves out
 * of the reply what concerns the host. `counts` of clients stand in the place of the engine's own.
 * Never rejects.
 */
export async function observe(
  { administration, lanes }: ObserverServices,
  request: AdministrationRequest,
  protocol: 2 | 3,
  counts: ClientCounts,
): Promise<Buffer> {
  const { databaseId, name, args } = request
  const refusal = administration.refusalToAsk(request) ?? refusalOf(name, args)
  if (refusal) return encodeError(errorText(refusal))
  try {
    const ask = askOver(lanes.shared({ databaseId, user: OBSERVER, protocol }))
    return shown(name, args, counts, await ask(encodeCommand([...name.split('|'), ...args])))
  } catch (error) {
    if (error instanceof HomeportError) return encodeError(errorText(error))
    throw error
  }
}

/** The users that Homeport itself has in every engine are none of the database. */
function refusalOf(name: string, [user = '']: readonly string[]): HomeportError | undefined {
  if (name !== 'ACL|DRYRUN' || !user.startsWith('homeport-')) return undefined
  return new HomeportError('command_malformed', { problem: `User '${user.slice(0, 64)}' not found` })
}

function shown(name: string, args: readonly string[], counts: ClientCounts, reply: Buffer): Buffer {
  if (name === 'INFO') return filterInfoReply(reply, args[0], counts)
  if (name === 'ROLE') return withoutReplicas(reply)
  return name === 'SLOWLOG' && args[0]?.toUpperCase() === 'GET' ? shownSlowLog(reply) : reply
}

/** Of a primary the last element lists where its replicas listen. */
function withoutReplicas(reply: Buffer): Buffer {
  const [role, offset, ...rest] = elementsOf(reply) ?? []
  return role && offset && rest.length === 1 ? encodeArray([role, offset, encodeArray([])]) : reply
}

/** An entry is `[number, time, microseconds, command, address, name]`. */
function shownSlowLog(reply: Buffer): Buffer {
  const entries = elementsOf(reply)
  if (!entries) return reply
  const shownEntries = entries.flatMap((entry) => {
    const [number, time, took, command, , ...rest] = elementsOf(entry) ?? []
    if (!number || !time || !took || !command || isOurs(command)) return []
    return [encodeArray([number, time, took, command, encodeBulk(NO_ADDRESS), ...rest])]
  })
  return encodeArray(shownEntries)
}

function isOurs(command: Buffer): boolean {
  const [name] = elementsOf(command) ?? []
  const text = name?.toString('latin1').split('\r\n')[1] ?? ''
  return OURS.has(text.toUpperCase())
}
