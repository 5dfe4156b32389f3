import { createHash, timingSafeEqual } from 'node:crypto'
import type { Plan, PlanTable } from '../contract/plans.js'
import type { operations } from '../store/index.js'
import { allowedIpsOf, planOf, readRegionsOf } from './engine-wish.js'

type DatabaseRow = operations.databases.DatabaseRow

/** A user of a database's data: `default` reads and writes, `default_ro` only reads. */
export type DataUser = 'default' | 'default_ro'

/** What the data plane has to know of a database in order to serve it. */
export interface ServedDatabase {
  readonly databaseId: string
  readonly port: number
  /** Whether the port itself speaks TLS. */
  readonly tls: boolean
  readonly maxRequestBytes: number
  readonly maxClients: number
  /** Grows when the credentials change: connections that logged in before are to be closed. */
  readonly loginEpoch: number
  /** Addresses and networks that may connect (see `ipMatcher`); empty means all. */
  readonly allowedIpRanges: readonly string[]
  /** Largest entry, bytes. */
  readonly maxEntryBytes: number
  /** Largest data set, bytes: what the engine is given. */
  readonly maxDataBytes: number
  readonly maxCommandsPerSecond: number
  readonly maxRequestsPerMonth: number
  /** A write counts for the primary and for each read region (reference redis 2.3). */
  readonly requestsPerWrite: number
  readonly idleTimeoutMs: number
  readonly scriptTimeoutMs: number
  readonly scriptMsPerMinute: number
}

const NS_PER_MS = 1_000_000

/** What decides how databases are served. */
export interface ServingSettings {
  readonly plans: PlanTable
  /** A proxy in front terminates TLS, so the ports behind it speak none. */
  readonly proxyTerminatesTls: boolean
}

interface Entry {
  readonly served: ServedDatabase
  readonly logins: Readonly<Record<DataUser, { username: string; password: string }>>
  /** Digests of what is taken as a password of `default`. */
  readonly ownerDigests: readonly Buffer[]
  readonly readerDigest: Buffer
  /** All digests in one text, to tell a change of credentials. */
  readonly opens: string
  /** Keys of this entry in the index of tokens. */
  readonly tokens: Readonly<Record<DataUser, string>>
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * The databases that are served, in memory, for the data plane: it asks for every connection and request.
 *
 * Passwords are compared as SHA-256 digests in constant time, each attempt against all digests of the database. Tokens
 * are found by their digest: the time of a lookup tells nothing that helps to guess a token.
 */
export class ServingDirectory {
  readonly #settings: ServingSettings
  readonly #entries = new Map<string, Entry>()
  readonly #byToken = new Map<string, { readonly entry: Entry; readonly user: DataUser }>()
  readonly #listeners = new Set<() => void>()
  #list: readonly ServedDatabase[] | undefined

  constructor(settings: ServingSettings) {
    this.#settings = settings
  }

  /** Serves a database from now on, or serves it as it has become. */
  put(row: DatabaseRow): void {
    const entry = entryOf(row, this.#settings, this.#entries.get(row.database_id))
    this.#forget(row.database_id)
    this.#entries.set(row.database_id, entry)
    this.#byToken.set(entry.tokens.default, { entry, user: 'default' })
    this.#byToken.set(entry.tokens.default_ro, { entry, user: 'default_ro' })
    this.#changed()
  }

  /** Serves a database no longer. */
  remove(databaseId: string): void {
    if (this.#forget(databaseId)) this.#changed()
  }

  /** Checks a password; `username` is undefined for the one-argument AUTH, which means `default`. */
  authenticate(databaseId: string, username: string | undefined, password: string): DataUser | undefined {
    const entry = this.#entries.get(databaseId)
    if (!entry) return undefined
    const given = digest(password)
    const matches = entry.ownerDigests.map((wanted) => timingSafeEqual(given, wanted))
    const isReader = timingSafeEqual(given, entry.readerDigest)
    const user = username ?? 'default'
    if (user === 'default') return matches.includes(true) ? user : undefined
    return user === 'default_ro' && isReader ? user : undefined
  }

  /** Finds what a REST token opens. */
  byRestToken(token: string): { readonly database: ServedDatabase; readonly user: DataUser } | undefined {
    const found = this.#byToken.get(digest(token).toString('base64'))
    return found && { database: found.entry.served, user: found.user }
  }

  /** Whether a database is served. */
  has(databaseId: string): boolean {
    return this.#entries.has(databaseId)
  }

  /** Every database that is served. The same array until something changes. */
  list(): readonly ServedDatabase[] {
    this.#list ??= [...this.#entries.values()].map((entry) => entry.served)
    return this.#list
  }

  /** Calls `listener` whenever a database appears, changes or goes. Returns what ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** What a user logs in to the engine with. The database must be served. */
  engineCredentials(databaseId: string, user: DataUser): { username: string; password: string } {
    const entry = this.#entries.get(databaseId)
    if (!entry) throw new Error(`database ${databaseId} is not served`)
    return entry.logins[user]
  }

  #forget(databaseId: string): boolean {
    const entry = this.#entries.get(databaseId)
    if (!entry) return false
    for (const token of Object.values(entry.tokens)) this.#byToken.delete(token)
    return this.#entries.delete(databaseId)
  }

  #changed(): void {
    this.#list = undefined
    for (const listener of [...this.#listeners]) listener()
  }
}

type Limits = Omit<
  ServedDatabase,
  'databaseId' | 'port' | 'tls' | 'loginEpoch' | 'allowedIpRanges' | 'requestsPerWrite'
>

function limitsOf(plan: Plan): Limits {
  return {
    maxRequestBytes: plan.db_max_request_size,
    maxClients: plan.db_max_clients,
    maxEntryBytes: plan.db_max_entry_size,
    maxDataBytes: Math.min(plan.db_memory_threshold, plan.db_disk_threshold),
    maxCommandsPerSecond: plan.db_max_commands_per_second,
    maxRequestsPerMonth: plan.db_request_limit,
    idleTimeoutMs: plan.db_conn_idle_timeout / NS_PER_MS,
    scriptTimeoutMs: plan.db_lua_timeout / NS_PER_MS,
    scriptMsPerMinute: plan.db_lua_credits_per_min / NS_PER_MS,
  }
}

function entryOf(row: DatabaseRow, { plans, proxyTerminatesTls }: ServingSettings, before?: Entry): Entry {
  const plan = planOf(row, plans)
  const readerDigest = digest(row.read_only_rest_token)
  const tokenDigest = digest(row.rest_token)
  const ownerDigests = [digest(row.password), tokenDigest]
  const opens = [...ownerDigests, readerDigest].map((one) => one.toString('base64')).join()
  return {
    served: {
      ...limitsOf(plan),
      requestsPerWrite: 1 + readRegionsOf(row).length,
      databaseId: row.database_id,
      port: row.port,
      tls: row.tls === 1 && !proxyTerminatesTls,
      loginEpoch: before ? before.served.loginEpoch + (before.opens === opens ? 0 : 1) : 0,
      allowedIpRanges: allowedIpsOf(row),
    },
    logins: {
      default: { username: 'default', password: row.password },
      default_ro: { username: 'default_ro', password: row.read_only_rest_token },
    },
    ownerDigests,
    readerDigest,
    opens,
    tokens: { default: tokenDigest.toString('base64'), default_ro: readerDigest.toString('base64') },
  }
}
