import type { Clock } from '../../base/index.js'
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
} from '../deps.js'
import { Regions } from '../replicas/regions.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { encodeTextCommand } from '../resp/encode.js'
import { EngineLink, type LinkOptions } from './engine-link.js'
import { greetingCommand, type LinkIdentity } from './greeting.js'
import type { ReplyLimits } from './reply-gate.js'
import type { ReplySink } from './reply-sink.js'
import { CollectedReplies } from './reply-sink.js'

/** Which connections are alike: those of one database, one user and one version of the protocol. */
export interface LaneKey {
  readonly databaseId: string
  readonly user: DataUser
  readonly protocol: 2 | 3
}

/** What lanes are made of. */
export interface LanesOptions {
  readonly directory: Pick<DatabaseDirectory, 'engineCredentials' | 'observerCredentials'>
  readonly fleet: EndpointSource
  readonly settings: Pick<GatewaySettings, 'region'>
  /** What replies of a database are held against. */
  readonly replyLimits: (databaseId: string) => ReplyLimits
  readonly clock: Clock
  readonly logger: GatewayLogger
}

interface Group {
  readonly shared: EngineLink
  /** Own links that nobody uses, each as good as new. */
  readonly idle: EngineLink[]
  /** Every link of the group that is not closed. */
  readonly all: Set<EngineLink>
}

/** Finds the engine that a connection leads to. */
type PickEndpoint = (endpoints: readonly DataEndpoint[]) => DataEndpoint

const MOST_IDLE_LINKS = 8
/**
 * While the shared lane of a group is connected, so many own lanes are too, before anybody asks for one: a blocking
 * command that had to wait for its connection would be overtaken by writes that come later.
 */
const SPARE_LINKS = 2
/** A replica that refuses is not waited for: the primary answers as well. */
const REPLICA_DIALS = 1
const REPLICA_SUFFIX = '/replica'
const SCRUB_REPLIES = 2
const NOTHING = Buffer.alloc(0)

/**
 * The connections to engines. For each database, user and version of the protocol there is one *shared lane*, over
 * which the stateless commands of everybody travel in one pipeline, and any number of *own lanes*, each lent to one
 * client while the state of its connection matters.
 *
 * In a node that serves a read region there is also one shared lane to the replica of that region (see `regions/`).
 *
 * An own lane that comes back is scrubbed (RESET and a new login) before anybody else gets it, so that no state of
 * one client ever reaches another, whatever the client did.
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

  /** The way to the replica in this node's region; undefined where the node serves none. */
  replica(key: LaneKey): ReplicaLane | undefined {
    return this.#regions?.lane(key)
  }

  /** Lends an own lane. Give it back with `giveBack`, or `destroy` it. */
  lend(key: LaneKey): EngineLink {
    const group = this.#group(key)
    for (;;) {
      const idle = group.idle.pop()
      if (idle?.isClosed) continue
      if (group.shared.isConnected) setImmediate(() => this.#fillIdle(key))
      return idle ?? this.#newLink(key, group)
    }
  }

  #fillIdle(key: LaneKey): void {
    const group = this.#groups.get(nameOf(key))
    if (!group?.shared.isConnected) return
    const { idle } = group
    idle.splice(0, idle.length, ...idle.filter((link) => !link.isClosed))
    while (idle.length < SPARE_LINKS) {
      const link = this.#newLink(key, group)
      link.onLost = () => this.discard(key, link)
      idle.unshift(link)
    }
    // They are lent from the end.
    for (const link of idle.slice(-SPARE_LINKS)) link.greeting().catch(() => {})
  }

  /** A lent lane goes on as one of another user or version of the protocol. Its engine has been told so. */
  regroup(link: EngineLink, from: LaneKey, to: LaneKey): void {
    this.#groups.get(nameOf(from))?.all.delete(link)
    this.#group(to).all.add(link)
    link.identity = this.identityOf(to)
  }

  /** What the connections of a group are greeted with. */
  identityOf({ databaseId, user, protocol }: LaneKey): LinkIdentity {
    const { directory } = this.#options
    const credentials = (): EngineCredentials =>
      user === OBSERVER ? directory.observerCredentials(databaseId) : directory.engineCredentials(databaseId, user)
    return { protocol, credentials }
  }

  /** Takes an own lane back, in whatever state it is. Nothing may be owed on it. */
  giveBack(key: LaneKey, link: EngineLink): void {
    const group = this.#groups.get(nameOf(key))
    if (!group || group.idle.length >= MOST_IDLE_LINKS || link.isClosed || link.isNumbered) {
      this.discard(key, link)
      return
    }
    link.onLost = () => this.discard(key, link)
    const scrub = encodeTextCommand(['RESET']) + greetingCommand(link.identity)
    link.sendText(new ScrubCheck((clean) => this.#keepIfClean(key, link, clean)), scrub, SCRUB_REPLIES)
  }

  /** Closes an own lane for good. */
  discard(key: LaneKey, link: EngineLink): void {
    const group = this.#groups.get(nameOf(key))
    group?.all.delete(link)
    link.destroy()
  }

  /** Closes every connection of one user to a database's engines. */
  forgetUser(databaseId: string, user: DataUser): void {
    this.forget(`${databaseId}/${user}`)
  }

  /** Closes every connection to a database's engines. */
  forget(databaseId: string): void {
    this.#regions?.forget(databaseId)
    for (const [name, group] of this.#groups) {
      if (!name.startsWith(`${databaseId}/`)) continue
      this.#groups.delete(name)
      for (const link of group.all) {
        link.destroy()
        link.onLost()
      }
    }
  }

  /**
   * Closes every connection to a database's engines, so that they may be stopped; the next command connects again.
   * Clients that have state on a connection of their own are sent away first with `and-send-away`.
   * @returns false, with all that is left as it was, when a client still uses one or has state on it.
   */
  release(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean {
    const groups = [...this.#groups].filter(([name]) => name.startsWith(`${databaseId}/`)).map(([, group]) => group)
    if (manner === 'and-send-away') for (const group of groups) sendAway(group)
    const links = groups.flatMap((group) => [...group.all])
    if (!links.every((link) => link.isUnused)) return false
    for (const link of links) link.hangUp()
    this.#regions?.lost(databaseId)
    return true
  }

  /** Sends commands on a connection of its own, and closes that. Resolves to their replies, nothing where it is lost. */
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
   * Whether the engine of a database is in a script, as far as that can be told from what it owes: `surely` where every
   * connection that waits for something waits for a script, `perhaps` where others wait as well, of which one may be what
   * the engine is at.
   */
  holdOf(databaseId: string): 'surely' | 'perhaps' | 'no' {
    const owed = new Set<EngineLink['awaited']>()
    for (const [name, { all }] of this.#groups) {
      if (!name.startsWith(`${databaseId}/`) || name.endsWith(REPLICA_SUFFIX)) continue
      for (const { awaited } of all) owed.add(awaited)
    }
    if (owed.has('script')) return owed.has('reply') ? 'perhaps' : 'surely'
    // Where the engine speaks on its own accord nobody knows what it owes.
    return owed.has('anything') && !owed.has('reply') ? 'perhaps' : 'no'
  }

  /** Closes everything. */
  close(): void {
    for (const group of this.#groups.values()) for (const link of group.all) link.destroy()
    this.#groups.clear()
  }

  #serveRegion(region: string): Regions {
    const { fleet, clock } = this.#options
    return new Regions({
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
    const shared = this.#makeLink(key, { replies: 'lent', mostDials: REPLICA_DIALS }, pick)
    shared.onLost = () => this.#regions?.lost(key.databaseId)
    const group = { shared, idle: [], all: new Set([shared]) }
    this.#groups.set(name, group)
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
    if (group && clean && group.idle.length < MOST_IDLE_LINKS) group.idle.push(link)
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
    this.#groups.set(name, group)
    if (key.user !== OBSERVER) shared.onConnected = () => this.#fillIdle(key)
    return group
  }

  #newLink(key: LaneKey, group: Group): EngineLink {
    const link = this.#makeLink(key, { replies: 'given' })
    group.all.add(link)
    return link
  }

  #makeLink(key: LaneKey, manner: Pick<LinkOptions, 'replies' | 'mostDials'>, pick = primaryOf): EngineLink {
    const { fleet, replyLimits, clock, logger } = this.#options
    const { databaseId } = key
    return new EngineLink({
      ...manner,
      identity: this.identityOf(key),
      replyLimits: replyLimits(databaseId),
      clock,
      logger,
      locate: async (signal) => pick(await fleet.endpoints(databaseId, signal)).socketPath,
    })
  }
}

function primaryOf(endpoints: readonly DataEndpoint[]): DataEndpoint {
  const primary = endpoints.find(({ role }) => role === 'primary')
  if (!primary) throw new HomeportError('engine_unavailable', {})
  return primary
}

/** Ends every connection that one client has to itself and needs. */
function sendAway({ shared, all }: Group): void {
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

/** Sees whether both replies of a scrub are what they have to be: `+RESET`, then no error. */
class ScrubCheck implements ReplySink {
  readonly #done: (clean: boolean) => void
  #text = ''
  #left = SCRUB_REPLIES

  constructor(done: (clean: boolean) => void) {
    this.#done = done
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#text += chunk.toString('latin1', start, end)
    this.#left -= completed
    if (this.#left === 0) this.#done(/^\+RESET\r\n[*%]/.test(this.#text))
  }

  fail(): void {
    this.#done(false)
  }
}
