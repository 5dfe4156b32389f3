import { maxOpenFiles } from './open-files.js'

const OWNER = Symbol('owner')

/** A connection of a client. */
export interface LimitedConnection {
  /** Set by `ConnectionLimiter` once the client is known. */
  [OWNER]?: string | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  readonly destroyed?: boolean | undefined
  once(event: 'close', listener: () => void): unknown
  destroy(): unknown
}

interface Unauthenticated {
  readonly connection: LimitedConnection
  readonly address: string
}

/** Settings of `ConnectionLimiter`. */
export interface ConnectionLimiterOptions {
  /**
   * Most connections of strangers, and of one owner. Default: a quarter of the files that the process may have open; for
   * strangers at most 5,000.
   */
  readonly most?: number
  /** Called after connections of strangers were closed, with their number since the last call; at most once a minute. */
  readonly onUnauthenticatedClosed?: (connections: number) => void
  /**
   * Like `onUnauthenticatedClosed`, for connections of an owner that were closed or refused; at most once a minute for each
   * owner.
   */
  readonly onOwnerLimited?: (owner: string, connections: number) => void
}

/** The connections of one owner. */
interface Owned {
  /** Oldest first. */
  readonly connections: Set<LimitedConnection>
  readonly limited: MinuteReport
}

/** Reports how often something has happened, at most once a minute. */
class MinuteReport {
  readonly #report: (times: number) => void
  #times = 0
  #reportedAtMs = Number.NEGATIVE_INFINITY

  constructor(report: (times: number) => void) {
    this.#report = report
  }

  add(): void {
    this.#times++
    const nowMs = performance.now()
    if (nowMs - this.#reportedAtMs < REPORT_EVERY_MS) return
    this.#reportedAtMs = nowMs
    this.#report(this.#times)
    this.#times = 0
  }
}

const SHARE_OF_FILES = 1 / 4
/** With this many shares of kept connections in total, an owner that has a full share itself gets no further connection. */
const SHARES_KEPT = 2
const MAX_UNAUTHENTICATED = 5_000
/** Assumed where the system does not report its limit. */
const ASSUMED_FILES = 4_096
/** An address with more than this share of the limit loses its connections first. */
const SHARE_OF_ADDRESS = 1 / 4
const REPORT_EVERY_MS = 60_000

/**
 * Limits the connections of strangers (clients that have not shown valid credentials) over all ports. Without a limit, their
 * idle connections would use all file descriptors, and clients could not connect. Beyond the limit the oldest is closed,
 * because a client with credentials shows them at once. Connections of known clients are limited per account. Over HTTP the
 * oldest is closed. Clients of the Redis protocol stay connected, so new ones are refused while the total is near the limit
 * of files.
 */
export class ConnectionLimiter {
  readonly #most: number
  readonly #maxOfOwner: number
  readonly #onOwnerLimited: ConnectionLimiterOptions['onOwnerLimited']
  readonly #closed: MinuteReport
  /** Keyed by the client's address and port, which a TLS socket shares with the connection below it. Oldest first. */
  readonly #connections = new Map<string, Unauthenticated>()
  readonly #ofAddress = new Map<string, Set<string>>()
  /** Addresses with more than their share: in a flood, each connection is younger than that of a slow client. */
  readonly #greedy = new Set<string>()
  /** Connections of known clients, by their owner. */
  readonly #ofOwner = new Map<string, Owned>()
  /** Number of connections of all owners that are never closed in favour of others. */
  #kept = 0

  constructor({ most, onUnauthenticatedClosed: onClosed, onOwnerLimited }: ConnectionLimiterOptions = {}) {
    const share = Math.floor((maxOpenFiles() ?? ASSUMED_FILES) * SHARE_OF_FILES)
    this.#most = most ?? Math.min(MAX_UNAUTHENTICATED, share)
    this.#maxOfOwner = most ?? share
    this.#closed = new MinuteReport((times) => onClosed?.(times))
    this.#onOwnerLimited = onOwnerLimited
  }

  /** Number of connections of strangers. */
  get size(): number {
    return this.#connections.size
  }

  /**
   * Counts a client that has connected. Call it again with the TLS socket of the connection. Where another node passes
   * connections on, one of the Redis protocol counts at the home of its database, and one of REST at that other node.
   */
  admit(connection: LimitedConnection): void {
    const { remoteAddress: address = '', remotePort } = connection
    if (!remotePort) return
    const key = keyOf(connection)
    this.#connections.set(key, { connection, address })
    const ofAddress = this.#ofAddress.get(address) ?? new Set()
    this.#ofAddress.set(address, ofAddress.add(key))
    if (this.#isGreedy(ofAddress)) this.#greedy.add(address)
    connection.once('close', () => this.#connections.get(key)?.connection === connection && this.#forget(key))
    if (this.#connections.size > this.#most) this.#closeOne()
  }

  /**
   * Notes that the client has shown valid credentials. Called for each request, so it is cheap while there are no strangers.
   * @param owner whose credentials they are; the oldest of too many connections of one owner is closed. Omitted: no limit.
   */
  markAuthenticated(connection: LimitedConnection, owner?: string): void {
    if (this.#connections.size > 0) this.#forget(keyOf(connection))
    if (owner !== undefined && owner !== connection[OWNER] && isOpen(connection)) this.#own(connection, owner)
  }

  /**
   * Notes that the client has logged in to stay connected. Its connection is not closed in favour of others of its owner:
   * those are refused instead, see `mayAddPersistent`.
   */
  markPersistent(connection: LimitedConnection, owner: string): void {
    this.markAuthenticated(connection)
    const name = persistentName(owner)
    if (connection[OWNER] === name || !isOpen(connection)) return
    this.#add(connection, name)
    this.#kept++
    connection.once('close', () => this.#kept--)
  }

  /** Whether one more client of an owner may connect and stay connected. */
  mayAddPersistent(owner: string): boolean {
    const owned = this.#ofOwner.get(persistentName(owner))
    const most = this.#maxOfOwner
    if (!owned || owned.connections.size < most || this.#kept < SHARES_KEPT * most) return true
    owned.limited.add()
    return false
  }

  #own(connection: LimitedConnection, owner: string): void {
    const { connections, limited } = this.#add(connection, owner)
    if (connections.size <= this.#maxOfOwner) return
    const [oldest = connection] = connections
    this.#disown(oldest)
    oldest.destroy()
    limited.add()
  }

  /** A proxy may send requests of several owners over one connection; it counts for the owner of the newest request. */
  #add(connection: LimitedConnection, name: string): Owned {
    if (connection[OWNER] === undefined) connection.once('close', () => this.#disown(connection))
    else this.#disown(connection)
    connection[OWNER] = name
    let owned = this.#ofOwner.get(name)
    if (!owned) {
      const limited = new MinuteReport((times) => this.#onOwnerLimited?.(name.replace(KEPT, ''), times))
      owned = { connections: new Set(), limited }
      this.#ofOwner.set(name, owned)
    }
    owned.connections.add(connection)
    return owned
  }

  #disown(connection: LimitedConnection): void {
    const name = connection[OWNER] ?? ''
    const connections = this.#ofOwner.get(name)?.connections
    connections?.delete(connection)
    if (connections?.size === 0) this.#ofOwner.delete(name)
  }

  #forget(key: string): Unauthenticated | undefined {
    const known = this.#connections.get(key)
    if (!known) return undefined
    this.#connections.delete(key)
    const ofAddress = this.#ofAddress.get(known.address) ?? new Set()
    ofAddress.delete(key)
    if (ofAddress.size === 0) this.#ofAddress.delete(known.address)
    if (!this.#isGreedy(ofAddress)) this.#greedy.delete(known.address)
    return known
  }

  #isGreedy(ofAddress: ReadonlySet<string>): boolean {
    return ofAddress.size > this.#most * SHARE_OF_ADDRESS
  }

  #closeOne(): void {
    const [greedy = ''] = this.#greedy
    const [oldest = ''] = this.#ofAddress.get(greedy) ?? this.#connections.keys()
    this.#forget(oldest)?.connection.destroy()
    this.#closed.add()
  }
}

/** Prefix of the name under which an owner's connections that stay are counted, apart from those that may be closed. */
const KEPT = 'kept '
const persistentName = (owner: string): string => KEPT + owner
/** False if the client left while its login waited. Such a connection emits no further `close`, and would count forever. */
const isOpen = ({ remotePort, destroyed }: LimitedConnection): boolean => !!remotePort && !destroyed
const keyOf = ({ remoteAddress, remotePort }: LimitedConnection): string => `${remoteAddress} ${remotePort}`
