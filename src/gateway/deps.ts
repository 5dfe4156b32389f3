import type { HomeportError } from '../contract/errors/errors.js'
import type { HostNames } from '../http/index.js'
import type { DatabaseMeter } from '../telemetry/index.js'
import type { CertificateSource } from './tls/certificate-source.js'

/**
 * The name of a user of a database's data. Every database has `default`, who owns it, and `default_ro`, who only reads;
 * others are made with ACL SETUSER.
 */
export type DataUser = string

/**
 * In the place of a user: the gateway itself, where it asks an engine about the engine. No user of a database has such a
 * name.
 */
export const OBSERVER: DataUser = '(observer)'

/** What the gateway has to know of a database in order to serve it. */
export interface ServedDatabase {
  readonly databaseId: string
  /** TCP port that clients of this database connect to. */
  readonly port: number
  /** Whether that port speaks TLS. */
  readonly tls: boolean
  /** The name, in lower case, by which a client of the shared port says that it means this database. */
  readonly serverName?: string | undefined
  /** Clients have to show a certificate of this authority (PEM). Omitted: none is asked for. */
  readonly clientAuthority?: string | undefined
  /** Longest command and longest reply, bytes. Omitted: 10 MiB. */
  readonly maxRequestBytes?: number
  /** Most client connections at a time. Omitted: 10,000. */
  readonly maxClients?: number
  /** Grows when the credentials change: connections that logged in before are closed. Omitted: 0. */
  readonly loginEpoch?: number
  /** Users that the owner made, each with a mark of its own: where it changes, that user is disconnected. */
  readonly userMarks?: Readonly<Record<string, string>>
  /** Addresses and networks that may connect (see `ipMatcher`). Omitted or empty: all. */
  readonly allowedIpRanges?: readonly string[]
  /** Largest entry (one key with its value), bytes of the engine's memory. Omitted: any. */
  readonly maxEntryBytes?: number
  /** Largest data set, bytes; the engine holds it, the gateway only names it. Omitted: not named. */
  readonly maxDataBytes?: number | undefined
  /** Commands beyond this rate wait. Omitted: none does. */
  readonly maxCommandsPerSecond?: number
  /** Most requests in a calendar month (UTC). Omitted: any number. */
  readonly maxRequestsPerMonth?: number
  /** Bytes in and out in a calendar month (UTC) beyond which commands are slowed down. Omitted: none are. */
  readonly maxBytesPerMonth?: number
  /** What a write counts for: 1 and 1 more for each read region. Omitted: 1. */
  readonly requestsPerWrite?: number
  /** A connection that sends nothing for so long is closed. Omitted: never. */
  readonly idleTimeoutMs?: number
  /** A script that runs for longer is ended. Omitted: never. */
  readonly scriptTimeoutMs?: number
  /** Time that scripts may take together in a minute (UTC). Omitted: any. */
  readonly scriptMsPerMinute?: number
}

/** Whether the commands of a database are served at the moment. */
export type Admission =
  | { readonly kind: 'open' }
  /** Every command but those about the connection itself is answered with `error`. */
  | { readonly kind: 'refused'; readonly error: HomeportError }

/** What the data plane counts of one database, and what others decide from it. */
export interface DatabaseUsage {
  /** Written by the gateway, read by others. Only `month` is also written by others, who know what was before. */
  readonly meter: DatabaseMeter
  /** Written by others, read by the gateway for every command. */
  readonly admission: Admission
}

/** Who keeps the usage of databases. */
export interface UsageSource {
  /** The same object each time, from memory. */
  usageOf(databaseId: string): DatabaseUsage
}

/** A database and the user that a credential stands for. */
export interface DataAccess {
  readonly database: ServedDatabase
  readonly user: DataUser
}

/** What the gateway asks of whoever manages the databases. Every answer comes from memory. */
export interface DatabaseDirectory {
  /** Checks a password in constant time. `username` is undefined for the one-argument AUTH. */
  authenticate(databaseId: string, username: string | undefined, password: string): DataUser | undefined
  /** Finds what a REST token opens. */
  byRestToken(token: string): DataAccess | undefined
  list(): readonly ServedDatabase[]
  /** One of them; undefined when it is not served. */
  find(databaseId: string): ServedDatabase | undefined
  /** Calls `listener` whenever a database appears, changes or goes, with its id. Returns what ends that. */
  onChange(listener: (databaseId: string) => void): () => void
  /** What a user logs in to the engine with. */
  engineCredentials(databaseId: string, user: DataUser): EngineCredentials
  /** What the gateway logs in to the engine with where it asks about the engine itself. */
  observerCredentials(databaseId: string): EngineCredentials
}

/** A command about the database itself: its users and its settings. */
export interface AdministrationRequest {
  readonly databaseId: string
  /** Who asks. */
  readonly user: DataUser
  /** Where the client connects from. */
  readonly address: string
  /** A row of the command table with the state `managed` or `observed`, such as `ACL|SETUSER`. */
  readonly name: string
  /** The arguments behind it. */
  readonly args: readonly string[]
}

/** A reply that no engine made. How it looks on the wire depends on the version of the protocol. */
export type MadeReply =
  | { readonly kind: 'ok' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'list'; readonly items: readonly MadeReply[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: string, value: MadeReply])[] }

/** Who answers commands about the database itself. */
export interface Administration {
  /** Rejects with the `HomeportError` that the client gets. Wakes no engine. */
  run(request: AdministrationRequest): Promise<MadeReply>
  /** Why a user may not ask the engine about itself by a command with the state `observed`; undefined when it may. */
  refusalToAsk(request: Pick<AdministrationRequest, 'databaseId' | 'user' | 'name'>): HomeportError | undefined
}

/** Numbers of clients in INFO. Engines see the gateway's connections only. */
export interface ClientCounts {
  readonly connected: number
  /** Clients whose command waits for the end of a pause. */
  readonly held: number
}

/** A login on an engine. */
export interface EngineCredentials {
  readonly username: string
  readonly password: string
}

/** Where one engine of a database can be reached. */
export interface DataEndpoint {
  readonly role: 'primary' | 'replica'
  /** The region that it stands for. */
  readonly region: string
  readonly socketPath: string
}

/** What the gateway asks of the fleet. */
export interface EndpointSource {
  /** Waits while an engine (re)starts; rejects after the fleet's own deadline or when `signal` is aborted. */
  endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly DataEndpoint[]>
}

/** What the gateway writes its log with; a pino logger is one. */
export interface GatewayLogger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The settings that the gateway reads. */
export interface GatewaySettings {
  /** Address that every listener binds to. */
  readonly host: string
  /** Port of the REST listener; 0 takes a free one. */
  readonly restPort: number
  /** The certificate of databases with TLS. Without it such a database cannot be opened. */
  readonly tls?: CertificateSource | undefined
  /** Proxies whose `X-Forwarded-For` is believed: addresses and networks (see `ipMatcher`). Omitted: none. */
  readonly trustedProxies?: readonly string[]
  /** The names under which the REST listener may be asked; under any where absent. */
  readonly hosts?: HostNames | undefined
  /** Port that databases with a server name share; 0 takes a free one. Omitted: there is none. */
  readonly domainPort?: number | undefined
  /** The region that this node serves: reads of databases that have a replica there are answered by it. */
  readonly region?: string | undefined
}

/** Longest command of a database that does not say otherwise. */
export const DEFAULT_MAX_REQUEST_BYTES = 10 * 1024 * 1024

/** Most client connections of a database that does not say otherwise. */
export const DEFAULT_MAX_CLIENTS = 10_000
