import type { ClientMemoryBudget, Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  type DatabaseDirectory,
  type DataEndpoint,
  type DataUser,
  type EndpointSource,
  type EngineCredentials,
  type GatewayLogger,
  type GatewaySettings,
  OBSERVER,
  type SiblingNodes,
} from '../deps.js'
import { Regions } from '../replicas/regions.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import type { Position } from '../replicas/replica-watch.js'
import { encodeTextCommand } from '../resp/encode.js'
import { EngineLink } from './engine-link.js'
import { greetingCommand, type LinkIdentity } from './greeting.js'
import { HeldMemory } from './held-memory.js'
import type { HomeControl } from './held-replies.js'
import type { LinkOptions } from './link-options.js'
import { countedIn, type ReplyLimits } from './reply-gate.js'
import { CollectedReplies } from './reply-sink.js'
import { SCRUB_REPLIES, ScrubCheck } from './scrub-check.js'

/** Connections with the same key are interchangeable: one database, one user, one protocol version. */
export interface LaneKey {
  readonly databaseId: string
  readonly user: DataUser
  readonly protocol: 2 | 3
}

/** The collaborators of the lanes. */
export interface LanesOptions {
  readonly directory: Pick<DatabaseDirectory, 'find' | 'engineCredentials' | 'observerCredentials'>
  readonly fleet: EndpointSource
  readonly settings: Pick<GatewaySettings, 'region'>
  /** The replication position of a replica's primary. Omitted: the engine of the primary is asked. */
  readonly primaryPosition?: (databaseId: string) => Promise<Position | undefined>
  /** Omitted: all clients of the region use this node. */
  readonly siblings?: SiblingNodes
  /** The limits of a database's replies. */
  readonly replyLimits: (databaseId: string) => ReplyLimits
  /** Omitted: no other node may take a database over. */
  readonly home?: HomeControl | undefined
  /** The memory budget of clients. Omitted: the bytes that dedicated lanes hold are not counted. */
  readonly memory?: ClientMemoryBudget | undefined
  readonly clock: Clock
  readonly logger: GatewayLogger
}

interface Group {
  readonly shared: EngineLink
  /** Free dedicated lanes, without state of a client. */
  readonly idle: EngineLink[]
  /** All links of the group that are not closed. */
  readonly all: Set<EngineLink>
}

/** Chooses the engine of a connection. */
type PickEndpoint = (endpoints: readonly DataEndpoint[]) => DataEndpoint

const MAX_IDLE_LINKS = 8
/**
 * Number of free dedicated lanes that are kept connected while the shared lane is. Later writes would overtake a blocking
 * command that had to wait for its connection.
 */
const READY_LINKS = 2
/** A replica that refuses is dialled once: the primary can answer too. */
const REPLICA_DIALS = 1
const REPLICA_SUFFIX = '/replica'
const NOTHING = Buffer.alloc(0)

/**
 * The connections to engines. For each database, user and protocol version there is one *shared lane*, the pipeline of
 * everybody's stateless commands, and any number of *dedicated lanes*. A dedicated lane is lent to one client while the
 * state of its connection matters.
 *
 * A node that serves a read region also has one shared lane to the replica in that region (see `replicas/`).
 *
 * A dedicated lane that a client gives back is scrubbed (RESET and a new login) before the next client gets it. So the state
 * of one client never reaches another, regardless of the commands that it sent.
 */
export class Lanes {
  readonly #options: LanesOptions
  readonly #groups = new Map<string, Group>()
  readonly #regions: Regions | undefined

  constructor(options: LanesOptions) {
    this.#options = options
    this.#regions = options.settings.region === undefined ? undefined : this.#serveRegion(options.settings.region)
  }

  /** The shared lane. It must only carry commands that leave no state behind. */
  shared(key: LaneKey): EngineLink {
    return this.#group(key).shared
  }

  /** The lane to the replica in this node's region; undefined when the node serves none. */
  replica(key: LaneKey): ReplicaLane | undefined {
    return this.#regions?.lane(key)
  }

  /** Records that the primary has answered a client whose user is unknown: every user of the database may have seen it. */
  sawPrimary(databaseId: string): void {
    this.#regions?.sawPrimary(databaseId)
  }

  /** Lends a dedicated lane. Return it with `giveBack` or `discard`. */
  lend(key: LaneKey): EngineLink {
    const group = this.#group(key)
    for (;;) {
      const idle = group.idle.pop()
      if (idle?.isClosed) continue
      if (group.shared.isConnected) setImmediate(() => this.#connectReady(key))
      return idle ?? this.#newLink(key, group)
    }
  }

  #connectReady(key: LaneKey): void {
    const group = this.#groups.get(nameOf(key))
    if (!group?.shared.isConnected) return
    const { idle } = group
    idle.splice(0, idle.length, ...idle.filter((link) => !link.isClosed))
    while (idle.length < READY_LINKS) {
      const link = this.#newLink(key, group)
      link.onLost = () => this.discard(key, link)
      idle.unshift(link)
    }
    // `lend` takes links from the end.
    for (const link of idle.slice(-READY_LINKS)) link.greeting().catch(() => {})
  }

  /** Moves a lent lane to another user or protocol version, after `introduce`. */
  regroup(link: EngineLink, from: LaneKey, to: LaneKey): void {
    this.#groups.get(nameOf(from))?.all.delete(link)
    this.#group(to).all.add(link)
    link.identity = this.identityOf(to)
  }

  /** The identity of the connections with this key. */
  identityOf({ databaseId, user, protocol }: LaneKey): LinkIdentity {
    const { directory } = this.#options
    const credentials = (): EngineCredentials =>
      user === OBSERVER ? directory.observerCredentials(databaseId) : directory.engineCredentials(databaseId, user)
    return { protocol, credentials }
  }

  /** Takes a dedicated lane back, in any state. No reply may be pending on it. */
  giveBack(key: LaneKey, link: EngineLink): void {
    const group = this.#groups.get(nameOf(key))
    if (!group || group.idle.length >= MAX_IDLE_LINKS || link.isClosed || link.isIdKnown) {
      this.discard(key, link)
      return
    }
    link.onLost = () => this.discard(key, link)
    const scrub = encodeTextCommand(['RESET']) + greetingCommand(link.identity)
    link.sendText(new ScrubCheck((clean) => this.#keepIfClean(key, link, clean)), scrub, SCRUB_REPLIES)
  }

  /** Closes a dedicated lane for good. */
  discard(key: LaneKey, link: EngineLink): void {
    const group = this.#groups.get(nameOf(key))
    group?.all.delete(link)
    link.destroy()
  }

  /** Closes every connection of one user to a database's engines. */
  forgetUser(databaseId: string, user: DataUser): void {
    this.forget(`${databaseId}/${user}`)
  }

  /**
   * Closes every connection to a database's engines.
   * @param unsent the error for commands that were not sent. Default: `engine_unavailable`.
   */
  forget(databaseId: string, unsent?: HomeportError): void {
    this.#regions?.forget(databaseId)
    for (const [name, group] of this.#groups) {
      if (!name.startsWith(`${databaseId}/`)) continue
      this.#groups.delete(name)
      for (const link of group.all) {
        link.destroy(undefined, unsent)
        link.onLost()
      }
    }
  }

  /**
   * Closes every connection to a database's engines, so that the engines can be stopped; the next command connects again.
   * `and-send-away` first disconnects clients that use a dedicated lane; from the first call on, new commands wait for the
   * next connection.
   * @returns false, with nothing closed, when a client still uses a connection or has state on it
   */
  release(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean {
    const groups = this.#groupsOf(databaseId)
    if (manner === 'and-send-away') for (const group of groups) disconnectClients(group)
    const links = groups.flatMap((group) => [...group.all])
    if (manner === 'and-send-away') for (const link of links) link.hold()
    if (!links.every((link) => link.isUnused)) return false
    for (const link of links) link.hangUp()
    this.#regions?.lost(databaseId)
    return true
  }

  /**
   * Sends nothing more to the engines of a database: later commands wait, until `proceed` or `forget`. Clients with state
   * on a connection, or with a command that waits for an event, keep the connection.
   * @returns false while the engines still have to answer commands, or a client is sending a large one
   */
  hold(databaseId: string): boolean {
    const links = this.#groupsOf(databaseId).flatMap(({ all }) => [...all])
    for (const link of links) link.hold()
    if (!links.every((link) => link.isSettled)) return false
    for (const link of links) link.hangUp()
    this.#regions?.lost(databaseId)
    return true
  }

  /** Sends the commands that have waited since `hold`. */
  proceed(databaseId: string): void {
    for (const { all } of this.#groupsOf(databaseId)) for (const link of all) link.proceed()
  }

  /** Whether a client is sending a large command to the engines of a database. */
  isReceiving(databaseId: string): boolean {
    return this.#groupsOf(databaseId).some(({ all }) => [...all].some((link) => link.isReceiving))
  }

  /** Ends commands that the engines have only in part. They have no effect. Clients get no answer, or over REST an error. */
  abortIncomplete(databaseId: string): void {
    for (const { all } of this.#groupsOf(databaseId)) {
      for (const link of [...all]) {
        if (link.lastPartAtMs === undefined) continue
        all.delete(link)
        link.destroy(new HomeportError('home_not_ready', {}))
        link.onLost()
      }
    }
  }

  #groupsOf(databaseId: string): readonly Group[] {
    return [...this.#groups].filter(([name]) => name.startsWith(`${databaseId}/`)).map(([, group]) => group)
  }

  /** Sends commands on a new connection and closes it. Resolves to their replies, empty when it is lost. */
  interrupt(key: LaneKey, commands: string, count: number): Promise<Buffer> {
    const link = this.lend(key)
    return new Promise((resolve) => {
      const close = (replies: Buffer): void => {
        this.discard(key, link)
        resolve(replies)
      }
      const lost = (): void => close(NOTHING)
      link.onLost = lost
      link.sendText(new CollectedReplies(count, close, lost, 'event'), commands, count)
    })
  }

  /**
   * Whether the engine of a database runs a script, judged by what is pending: `surely` when every connection with a
   * pending reply waits for a script, `perhaps` when others wait for ordinary replies, which the engine may be working on.
   */
  runsScript(databaseId: string): 'surely' | 'perhaps' | 'no' {
    const pending = new Set<EngineLink['awaited']>()
    for (const [name, { all }] of this.#groups) {
      if (!name.startsWith(`${databaseId}/`) || name.endsWith(REPLICA_SUFFIX)) continue
      for (const { awaited } of all) pending.add(awaited)
    }
    if (pending.has('script')) return pending.has('reply') ? 'perhaps' : 'surely'
    // On a connection that gets messages, replies are not counted.
    return pending.has('anything') && !pending.has('reply') ? 'perhaps' : 'no'
  }

  /** Closes everything. */
  close(): void {
    for (const group of this.#groups.values()) for (const link of group.all) link.destroy()
    this.#groups.clear()
  }

  #serveRegion(region: string): Regions {
    const { fleet, clock, primaryPosition, siblings } = this.#options
    return new Regions({
      primaryPosition,
      siblings,
      region,
      fleet,
      clock,
      primary: (key) => this.shared(key),
      replica: (key) => this.#replicaGroup(key).shared,
      drop: (databaseId) => this.#dropReplica(databaseId),
    })
  }

  #replicaGroup(key: LaneKey): Group {
    const name = nameOf(key) + REPLICA_SUFFIX
    const known = this.#groups.get(name)
    if (known) return known
    const pick: PickEndpoint = (endpoints) => this.#regions?.pick(endpoints) ?? primaryOf(endpoints)
    const shared = this.#makeLink(key, { replies: 'lent', maxDials: REPLICA_DIALS }, pick)
    shared.onLost = () => this.#regions?.lost(key.databaseId)
    const group = { shared, idle: [], all: new Set([shared]) }
    if (!shared.isClosed) this.#groups.set(name, group)
    return group
  }

  #dropReplica(databaseId: string): void {
    for (const [name, group] of this.#groups) {
      if (!name.startsWith(`${databaseId}/`) || !name.endsWith(REPLICA_SUFFIX)) continue
      this.#groups.delete(name)
      group.shared.destroy()
    }
  }

  #keepIfClean(key: LaneKey, link: EngineLink, clean: boolean): void {
    const group = this.#groups.get(nameOf(key))
    if (group && clean && group.idle.length < MAX_IDLE_LINKS) group.idle.push(link)
    else this.discard(key, link)
  }

  #group(key: LaneKey): Group {
    const name = nameOf(key)
    const known = this.#groups.get(name)
    if (known) return known
    const all = new Set<EngineLink>()
    const shared = this.#makeLink(key, { replies: 'lent' })
    all.add(shared)
    const group = { shared, idle: [], all }
    if (!shared.isClosed) this.#groups.set(name, group)
    if (key.user !== OBSERVER) shared.onConnected = () => this.#connectReady(key)
    return group
  }

  #newLink(key: LaneKey, group: Group): EngineLink {
    const { memory } = this.#options
    const held = memory && new HeldMemory(key.databaseId, memory, () => close())
    const link = this.#makeLink(key, { replies: 'given' }, primaryOf, held)
    const close = (): void => {
      group.all.delete(link)
      link.destroy(new HomeportError('memory_short', {}))
      link.onLost()
    }
    group.all.add(link)
    return link
  }

  #makeLink(
    key: LaneKey,
    manner: Pick<LinkOptions, 'replies' | 'maxDials'>,
    pick = primaryOf,
    held?: HeldMemory,
  ): EngineLink {
    const { directory, fleet, replyLimits, home, clock, logger } = this.#options
    const { databaseId } = key
    const checkHome = home && (() => refuseUnless(home.mayServe(databaseId)))
    const link = new EngineLink({
      ...manner,
      identity: this.identityOf(key),
      replyLimits: countedIn(held, replyLimits(databaseId)),
      clock,
      logger,
      checkHome,
      // Replies to the gateway's own questions do not leave this node.
      confirm: home && key.user !== OBSERVER ? () => home.confirm(databaseId) : undefined,
      locate: async (signal) => {
        checkHome?.()
        return pick(await fleet.endpoints(databaseId, signal)).socketPath
      },
    })
    // A session or request may outlive its database for a moment. Nobody would close lanes that it opens then.
    if (!directory.find(databaseId)) link.destroy(new HomeportError('home_not_ready', {}))
    return link
  }
}

function refuseUnless(mayServe: boolean): void {
  if (!mayServe) throw new HomeportError('home_cut_off', {})
}

function primaryOf(endpoints: readonly DataEndpoint[]): DataEndpoint {
  const primary = endpoints.find(({ role }) => role === 'primary')
  if (!primary) throw new HomeportError('engine_unavailable', {})
  return primary
}

/** Closes every dedicated lane that is in use; its client is disconnected. */
function disconnectClients({ shared, all }: Group): void {
  for (const link of [...all]) {
    if (link === shared || link.isUnused) continue
    all.delete(link)
    link.destroy()
    link.onLost()
  }
}

function nameOf({ databaseId, user, protocol }: LaneKey): string {
  return `${databaseId}/${user}/${protocol}`
}
