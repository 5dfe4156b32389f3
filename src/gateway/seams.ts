import type { SecureContextOptions } from 'node:tls'
import type { HomeportError } from '../contract/errors.js'
import type { DatabaseMeter } from '../telemetry/index.js'

/** A user of a database's data: `default` reads and writes, `default_ro` only reads. */
export type DataUser = 'default' | 'default_ro'

/** What the gateway has to know of a database in order to serve it. */
export interface ServedDatabase {
  readonly databaseId: string
  /** TCP port that clients of this database connect to. */
  readonly port: number
  /** Whether that port speaks TLS. */
  readonly tls: boolean
  /** Longest command and longest reply, bytes. Omitted: 10 MiB. */
  readonly maxRequestBytes?: number
  /** Most client connections at a time. Omitted: 10,000. */
  readonly maxClients?: number
  /** Grows when the credentials change: connections that logged in before are closed. Omitted: 0. */
  readonly loginEpoch?: number
  /** Addresses and networks that may connect (see `ipMatcher`). Omitted or empty: all. */
  readonly allowedIpRanges?: readonly string[]
  /** Largest entry (one key with its value), bytes of the engine's memory. Omitted: any. */
  readonly maxEntryBytes?: number
  /** Largest data set, bytes; the engine holds it, the gateway only names it. Omitted: not named. */
  readonly maxDataBytes?: number
  /** Commands beyond this rate wait. Omitted: none does. */
  readonly maxCommandsPerSecond?: number
  /** Most requests in a calendar month (UTC). Omitted: any number. */
  readonly maxRequestsPerMonth?: number
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
  /** Calls `listener` whenever a database appears, changes or goes. Returns what ends that. */
  onChange(listener: () => void): () => void
  /** What a user logs in to the engine with. */
  engineCredentials(databaseId: string, user: DataUser): EngineCredentials
}

/** A login on an engine. */
export interface EngineCredentials {
  readonly username: string
  readonly password: string
}

/** Where one engine of a database can be reached. */
export interface DataEndpoint {
  readonly role: 'primary' | 'replica'
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
  /** Certificate and key for databases with TLS. Without them such a database cannot be opened. */
  readonly tls?: SecureContextOptions
}

/** Longest command of a database that does not say otherwise. */
export const DEFAULT_MAX_REQUEST_BYTES = 10 * 1024 * 1024

/** Most client connections of a database that does not say otherwise. */
export const DEFAULT_MAX_CLIENTS = 10_000
