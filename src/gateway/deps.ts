import type { Duplex } from 'node:stream'
import type { CertificateSource } from '../certificates/index.js'
import type { HomeportError } from '../contract/errors/errors.js'
import type { HostNames, RemoteNode } from '../http/index.js'
import type { DatabaseMeter, Logger } from '../telemetry/index.js'
import type { Position } from './replicas/replica-watch.js'

/**
 * The name of a user of a database's data. Every database has `default`, which owns it, and `default_ro`, which only
 * reads; the owner creates others with ACL SETUSER.
 */
export type DataUser = string

/** The gateway's own user, for questions about the engine itself. No user of a database can have this name. */
export const OBSERVER: DataUser = '(observer)'

/** A database as the gateway serves it. */
export interface ServedDatabase {
  readonly databaseId: string
  /** The account, for the limit of its connections. Omitted: one account has all such databases. */
  readonly owner?: string
  /** TCP port that clients of this database connect to. */
  readonly port: number
  /** Whether that port speaks TLS. */
  readonly tls: boolean
  /** The server name (SNI), in lower case, by which clients of the shared port choose this database. */
  readonly serverName?: string | undefined
  /** Clients have to present a certificate of this authority (PEM). Omitted: clients need no certificate. */
  readonly clientAuthority?: string | undefined
  /** Longest command and longest reply, bytes. Omitted: 10 MiB. */
  readonly maxRequestBytes?: number
  /** Most client connections at a time. Omitted: 10,000. */
  readonly maxClients?: number
  /** Grows when the credentials change: connections that logged in before are closed. Omitted: 0. */
  readonly loginEpoch?: number
  /** Users that the owner created, each with a mark. When the mark changes, the user's connections are closed. */
  readonly userMarks?: Readonly<Record<string, string>>
  /** Addresses and networks that may connect (see `ipMatcher`). Omitted or empty: all. */
  readonly allowedIpRanges?: readonly string[]
  /** Largest entry (one key with its value), bytes of the engine's memory. Omitted: any. */
  readonly maxEntryBytes?: number
  /** Largest data set, bytes. The engine enforces it, the gateway only names it in errors. Omitted: not named. */
  readonly maxDataBytes?: number | undefined
  /** Commands beyond this rate wait. Omitted: no limit. */
  readonly maxCommandsPerSecond?: number
  /** Most requests in a calendar month (UTC). Omitted: any number. */
  readonly maxRequestsPerMonth?: number
  /** Bytes in and out in a calendar month (UTC) beyond which commands are slowed down. Omitted: no limit. */
  readonly maxBytesPerMonth?: number
  /** Requests that a write counts as: 1, and 1 more for each read region. Omitted: 1. */
  readonly requestsPerWrite?: number
  /** A connection that sends nothing for this time is closed. Omitted: never. */
  readonly idleTimeoutMs?: number
  /** A script that runs longer is ended. Omitted: never. */
  readonly scriptTimeoutMs?: number
  /** Time that all scripts together may take in a minute (UTC). Omitted: no limit. */
  readonly scriptMsPerMinute?: number
}

/** Whether the commands of a database are served now. */
export type Admission =
  | { readonly kind: 'open' }
  /** Every command is answered with `error`, except commands about the connection itself. */
  | { readonly kind: 'refused'; readonly error: HomeportError }

/** The usage of one database, which the gateway counts, and the decision that the module `databases` derives from it. */
export interface DatabaseUsage {
  /** Written by the gateway. The module `databases` reads it, and restores the counts of the month after a restart. */
  readonly meter: DatabaseMeter
  /** Written by the module `databases`, read by the gateway for every command. */
  readonly admission: Admission
}

/** Keeps the usage of databases. */
export interface UsageSource {
  /** Returns the same object each time, from memory. */
  usageOf(databaseId: string): DatabaseUsage
}

/** The database and user that a credential opens. */
export interface DataAccess {
  readonly database: ServedDatabase
  readonly user: DataUser
}

/** The databases to serve, and their users. Every answer comes from memory. */
export interface DatabaseDirectory {
  /** Checks a password in constant time. `username` is undefined for the one-argument AUTH. */
  authenticate(databaseId: string, username: string | undefined, password: string): DataUser | undefined
  /** Finds the database and user of a REST token. */
  byRestToken(token: string): DataAccess | undefined
  list(): readonly ServedDatabase[]
  /** One database; undefined when it is not served. */
  find(databaseId: string): ServedDatabase | undefined
  /** Calls `listener` with the id of every database that appears, changes or disappears. Returns an unsubscribe function. */
  onChange(listener: (databaseId: string) => void): () => void
  /** Credentials of a user on the engine. */
  engineCredentials(databaseId: string, user: DataUser): EngineCredentials
  /** Credentials of the gateway's own user on the engine: see `OBSERVER`. */
  observerCredentials(databaseId: string): EngineCredentials
}

/** A command about the database itself: its users, its settings or its engine. */
export interface AdministrationRequest {
  readonly databaseId: string
  /** The user that sent it. */
  readonly user: DataUser
  /** Address of the client. */
  readonly address: string
  /** A row of the command table with the state `managed` or `observed`, such as `ACL|SETUSER`. */
  readonly name: string
  /** The arguments after the name. */
  readonly args: readonly string[]
}

/** A reply that the gateway makes and encodes in the client's version of the protocol. */
export type MadeReply =
  | { readonly kind: 'ok' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'list' | 'set'; readonly items: readonly MadeReply[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: string, value: MadeReply])[] }

/** Answers commands about the database itself. */
export interface Administration {
  /** Answers a command. Rejects with the `HomeportError` that the client gets. Wakes no engine. */
  run(request: AdministrationRequest): Promise<MadeReply>
  /** Why a user may not send a command with the state `observed`, which asks about the engine; undefined when it may. */
  refusalToAsk(request: Pick<AdministrationRequest, 'databaseId' | 'user' | 'name'>): HomeportError | undefined
}

/** Numbers of clients for INFO. An engine counts only the connections of the gateway. */
export interface ClientCounts {
  readonly connected: number
  /** Clients whose command waits for the end of a pause. */
  readonly held: number
}

/** Credentials of a user on an engine. */
export interface EngineCredentials {
  readonly username: string
  readonly password: string
}

/** The address of one engine of a database. */
export interface DataEndpoint {
  readonly role: 'primary' | 'replica'
  /** The region that it serves. */
  readonly region: string
  readonly socketPath: string
}

/** Where a client connects from. */
export interface ClientAddress {
  readonly ip: string
  readonly port: number
}

/** The port of a database that another node serves. */
export interface PortElsewhere {
  readonly port: number
  readonly tls: boolean
  readonly readRegions: readonly string[]
}

/** The ports of databases that other nodes serve. This node listens on them too, and passes the clients on. */
export interface PortsElsewhere {
  /**
   * Calls `follower` with the ids of databases whose port has changed, first with all ids. Its promise resolves when this
   * node listens on the changed ports.
   */
  follow(follower: (databaseIds: readonly string[]) => Promise<void>): Promise<void>
  /** The port of a database; undefined when this node must not listen for it. */
  find(databaseId: string): PortElsewhere | undefined
  /** Connects a client to the node that serves a database. Rejects with the `HomeportError` that the client gets. */
  connect(databaseId: string, client: ClientAddress): Promise<Duplex>
}

/** Finds the node that serves a database, if it is another node. Promises reject with the `HomeportError` for the client. */
export interface OtherNodes {
  byToken(token: string): Promise<RemoteNode | undefined>
  /** For a request that another node has passed on: the node to which this node has handed the database over. */
  movedTo(token: string): RemoteNode | undefined
  /** While the database of a token moves to another home: resolves when it has arrived. Undefined when it does not move. */
  whileMoving(token: string): Promise<void> | undefined
  /** @param serverName in lower case */
  byServerName(serverName: string): Promise<RemoteNode | undefined>
  readonly ports?: PortsElsewhere | undefined
}

/** Counts of the reads of a database that another node has answered from its replica. */
export interface ReadsElsewhere {
  /** Number of reads by command. */
  readonly commands: readonly (readonly [name: string, count: number])[]
  readonly bytesIn: number
  readonly bytesOut: number
}

/** How a client addressed a database of another node: by its port, a token, or a server name in lower case. */
export type DatabaseLookup =
  | { readonly kind: 'port'; readonly databaseId: string }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'name'; readonly serverName: string }

/** The other nodes of this node's region. Their clients may be users of the same databases. */
export interface SiblingNodes {
  /** Whether all commands of the region to a database whose replica this node keeps go through this node. */
  isOnlyNodeOfRegion(databaseId: string): boolean
  /**
   * Asks the siblings whether they have passed answers of the home to clients. Resolves to true when all have answered, to
   * false when one did not answer in time.
   * @param onMore called before that, if a sibling has passed an answer to a client since it was last asked.
   */
  askSiblings(databaseId: string, onMore: () => void): Promise<boolean>
  /** Reports that an answer of the home is about to be passed to a client. */
  countForwarded(by: DatabaseLookup): void
  /** The other node of the region that keeps the replica of a database and accepts clients for it. */
  replicaInRegion(by: DatabaseLookup): RegionReplica | undefined
}

/** A node of the same region that keeps a replica. Both ways reject when it cannot be reached; then nothing was sent. */
export interface RegionReplica {
  /** Way of requests over REST. */
  readonly rest: RemoteNode
  /** Connects a client of the port of the database. */
  connect(client: ClientAddress): Promise<Duplex>
}

/** The replicas that this node keeps, in its region, of databases whose home is another node. */
export interface ReplicasHere extends EndpointSource, SiblingNodes {
  /** Users and limits of these databases. */
  readonly directory: Pick<
    DatabaseDirectory,
    'byRestToken' | 'find' | 'onChange' | 'engineCredentials' | 'observerCredentials'
  >
  /** Whether the home lets this node answer reads at this moment. Called for each chunk of replies. */
  mayRead(databaseId: string): boolean
  /**
   * Takes `count` reads from the number that the home allows. False: the home has to answer them.
   * @param seen how this node knows what the client has seen: because the region's nodes see all its commands (`node`), or
   *   by a sync token as well (`token`).
   */
  take(databaseId: string, count: number, seen: 'node' | 'token'): boolean
  /** Counts commands that were taken, by name, and bytes from and to the client. */
  note(databaseId: string, commands: readonly string[], bytesIn: number, bytesOut: number): void
  /** The replication position of the primary. Rejects when the home cannot be asked. */
  primaryPosition(databaseId: string): Promise<Position | undefined>
}

/** The engines of databases: the gateway's view of the fleet. */
export interface EndpointSource {
  /** Waits while an engine starts or restarts. Rejects after the fleet's own deadline, or when `signal` is aborted. */
  endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly DataEndpoint[]>
}

/** The gateway's log. */
export type GatewayLogger = Logger

/** The settings of the gateway. */
export interface GatewaySettings {
  /** Address that every listener binds to. */
  readonly host: string
  /** Port of the REST listener; 0 chooses a free one. */
  readonly restPort: number
  /** Whether each request of the REST listener is logged. Default: no. */
  readonly accessLog?: boolean
  /** The certificate of databases with TLS. Omitted: such databases cannot be opened. */
  readonly tls?: CertificateSource | undefined
  /** Proxies whose `X-Forwarded-For` is trusted: addresses and networks (see `ipMatcher`). Omitted: none. */
  readonly trustedProxies?: readonly string[]
  /** Host names that the REST listener accepts. Omitted: any. */
  readonly hosts?: HostNames | undefined
  /** Port that databases with a server name share; 0 chooses a free one. Omitted: there is no such port. */
  readonly domainPort?: number | undefined
  /** The region that this node serves. Reads of databases with a replica in that region go to the replica. */
  readonly region?: string | undefined
}

/** `maxRequestBytes` of a database that does not set it. */
export const DEFAULT_MAX_REQUEST_BYTES = 10 * 1024 * 1024

/** `maxClients` of a database that does not set it. */
export const DEFAULT_MAX_CLIENTS = 10_000
