import { type Clock, pause } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { SCHEMA_RANGE, type SchemaRange, type Store } from '../store/index.js'
import { differences } from './agreement.js'
import { DeathDetector } from './death-detector.js'
import { DEAD_AFTER_MS, LOOK_EVERY_MS } from './membership.js'
import * as nodeRows from './transactions/cluster-nodes.js'
import type { Incarnation } from './types.js'

/** The properties that a node stores about itself. */
export interface NodeIdentity {
  readonly name: string
  /** Host under which other nodes reach this one. */
  readonly host: string
  /** Port that other nodes connect to. Default: the port on which the link listens. */
  readonly port?: number | undefined
  /** Id of the data directory. */
  readonly dir: string
  readonly version: string
  /** The schemas that the node works with. Default: those of this version. */
  readonly range?: SchemaRange
  /** The region that the node serves. Default: all. */
  readonly region?: string | undefined
  /** Digests of the options that all nodes must agree on, by name. */
  readonly config: Readonly<Record<string, string>>
}

/** The row of a node. @param listening the port of its link. */
export function describeNode(identity: NodeIdentity, listening: number): nodeRows.NewNode {
  const { name, dir, version, host, port = listening, range = SCHEMA_RANGE, region = null } = identity
  return { name, dir, version, range, region, advertise: addressOf(host, port), config: sorted(identity.config) }
}

const addressOf = (host: string, port: number): string => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)

/** The options as JSON in a fixed order, so that equal options have equal texts. */
const sorted = (config: Readonly<Record<string, string>>): string =>
  JSON.stringify(Object.fromEntries(Object.entries(config).sort(([one], [other]) => (one < other ? -1 : 1))))

/** Within this time a node that conflicts with this one has either beaten or been declared dead. */
const GIVE_UP_AFTER_MS = DEAD_AFTER_MS + 5_000

/** The collaborators of a registration. */
export interface RegistrationDeps {
  readonly store: Store
  readonly clock: Clock
  readonly monotonicMs: () => number
}

/** The incarnation that has begun, and the version up to which announcements do not concern it. */
export interface Registered {
  readonly incarnation: Incarnation
  readonly seen: number
}

/**
 * Begins an incarnation of a node. A row that conflicts with it, by name, version or configuration, may belong to a process
 * that was killed, and perhaps no other node runs that could declare it dead. So this node watches it: if the row's node
 * beats, the start is refused; if it stays silent, it is declared dead.
 * @throws HomeportError `node_name_taken`, `node_config_differs`, `node_versions_apart`, `node_user_differs`, `store_newer`.
 */
export async function register(node: nodeRows.NewNode, deps: RegistrationDeps): Promise<Registered> {
  const { store, clock, monotonicMs } = deps
  const deaths = new DeathDetector(store)
  const beats = new Map<Incarnation, number>()
  const endMs = monotonicMs() + GIVE_UP_AFTER_MS
  for (;;) {
    const result = await store.run(nodeRows.register, { node, now: clock.now() })
    if (result.kind === 'registered') return result
    if (result.kind === 'too old') throw new HomeportError('store_newer', { number: result.number, name: result.name })
    if (result.kind === 'users apart') throw new HomeportError('node_user_differs', { users: result.users })
    const other = result.kind === 'taken' ? result.by : result.from
    const hasBeaten = (beats.get(other.incarnation) ?? other.beat) !== other.beat
    if (hasBeaten || monotonicMs() >= endMs) throw refusal(node, result)
    beats.set(other.incarnation, other.beat)
    await endSilent(deaths, deps)
    await pause(clock, LOOK_EVERY_MS)
  }
}

async function endSilent(deaths: DeathDetector, { store, monotonicMs }: RegistrationDeps): Promise<void> {
  const sentMs = monotonicMs()
  const beats = await store.run(nodeRows.list, {})
  await deaths.examine({ sentMs, returnedMs: monotonicMs(), beats })
}

function refusal(
  node: nodeRows.NewNode,
  result: Exclude<nodeRows.Registration, { kind: 'registered' | 'too old' | 'users apart' }>,
): HomeportError {
  if (result.kind === 'taken') {
    const { name, advertise, started_at } = result.by
    const since = new Date(started_at).toISOString()
    return new HomeportError('node_name_taken', { node: name, address: advertise, since })
  }
  const { name, config, version } = result.from
  if (result.kind === 'apart') {
    return new HomeportError('node_versions_apart', {
      nodes: [`"${name}" (version ${version})`],
      isOlder: result.isOlder,
    })
  }
  return new HomeportError('node_config_differs', { node: name, options: differences(node.config, config) })
}
