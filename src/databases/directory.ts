import { hash, timingSafeEqual } from 'node:crypto'
import { NS_PER_MS, type PlanTable } from '../contract/databases/plans.js'
import { OBSERVER_USER } from '../fleet/index.js'
import {
  allowedIpsOf,
  dataBoundOf,
  observerPasswordOf,
  planOf,
  readRegionsOf,
  settingsOf,
  usersOf,
} from './desired-engine.js'
import type { DatabaseRow } from './transactions/database-row.js'
import { matchesPassword, restTokenOf, type StoredUser } from './users/index.js'

/**
 * The name of a user of a database's data: `default` (the owner), `default_ro` (read-only), or one that the owner created
 * (`users/`).
 */
export type DataUser = string

/** What the data plane needs to serve a database. */
export interface ServedDatabase {
  readonly databaseId: string
  /** Its account. */
  readonly owner: string
  readonly port: number
  /** Whether the port itself speaks TLS. */
  readonly tls: boolean
  /** The TLS server name (SNI) that selects this database on the shared port. */
  readonly serverName: string | undefined
  /** PEM of the authority that must have signed a client's certificate. */
  readonly clientAuthority: string | undefined
  readonly maxRequestBytes: number
  readonly maxClients: number
  /** Grows when the credentials change; the data plane then closes connections that logged in before. */
  readonly loginEpoch: number
  /** Users besides `default` and `default_ro`, each with a mark that is unique even if a name is reused. */
  readonly userMarks: Readonly<Record<string, string>>
  /** Addresses and networks that may connect (see `ipMatcher`); empty means all. */
  readonly allowedIpRanges: readonly string[]
  /** Largest entry, bytes. */
  readonly maxEntryBytes: number
  /** Largest data set, bytes: the engine's `maxmemory`. Undefined when a client has set a smaller one. */
  readonly maxDataBytes: number | undefined
  readonly maxCommandsPerSecond: number
  readonly maxRequestsPerMonth: number
  /** Bytes in and out per month beyond which commands are slowed down. */
  readonly maxBytesPerMonth: number
  /** A write counts for the primary and for each read region (reference redis 2.3). */
  readonly requestsPerWrite: number
  readonly idleTimeoutMs: number
  readonly scriptTimeoutMs: number
  readonly scriptMsPerMinute: number
}

/** Settings that apply to all served databases. */
export interface ServingSettings {
  readonly plans: PlanTable
  /** A proxy in front terminates TLS, so the database ports speak plain TCP. */
  readonly proxyTerminatesTls: boolean
  /** Databases with TLS are also served under names below this domain. */
  readonly domain?: string | undefined
}

/** The settings for databases from the options of the server. */
export function servingOf(
  plans: PlanTable,
  {
    proxyTerminatesTls,
    redisDomain,
  }: { readonly proxyTerminatesTls: boolean; readonly redisDomain?: string | undefined },
): ServingSettings {
  return { plans, proxyTerminatesTls, domain: redisDomain?.toLowerCase() }
}

/** Notified of each change before the listeners of `onChange`. */
export interface DirectoryFollower {
  /** A database is served now, or its row has changed. */
  put(row: DatabaseRow): void
  /** A database is no longer served. */
  remove(databaseId: string): void
}

/**
 * A served database. Values that a start does not need are computed at their first use: there may be ten thousand databases
 * that nobody uses.
 */
class Entry {
  readonly row: DatabaseRow
  readonly served: ServedDatabase
  #users: ReadonlyMap<DataUser, StoredUser> | undefined

  constructor(row: DatabaseRow, served: ServedDatabase) {
    this.row = row
    this.served = served
  }

  /** The users that the owner created. */
  get users(): ReadonlyMap<DataUser, StoredUser> {
    this.#users ??= new Map(usersOf(this.row).map((user) => [user.name, user]))
    return this.#users
  }

  /** The password of a user for the engine; undefined when there is no such user. */
  secretOf(user: DataUser): string | undefined {
    if (user === 'default') return this.row.password
    if (user === 'default_ro') return this.row.read_only_rest_token
    return this.users.get(user)?.secret
  }
}

// The one-shot `hash` is faster than `createHash`: a start makes some for each database, and a REST request needs one.
const digest = (text: string): Buffer => hash('sha256', text, 'buffer')
/** The digest of a token. */
export const digestOfToken = (token: string): string => hash('sha256', token, 'base64')

/**
 * The served databases, in memory. The data plane looks here for every connection and request.
 *
 * Passwords are compared as SHA-256 digests in constant time, each attempt against all digests of the database. Tokens
 * are looked up by their digest, so the time of a lookup does not help to guess a token.
 */
export class ServingDirectory {
  readonly #settings: ServingSettings
  readonly #entries = new Map<string, Entry>()
  readonly #byToken = new Map<string, { readonly entry: Entry; readonly user: DataUser }>()
  readonly #listeners = new Set<(databaseId: string) => void>()
  readonly #followers = new Set<DirectoryFollower>()
  #list: readonly ServedDatabase[] | undefined

  constructor(settings: ServingSettings) {
    this.#settings = settings
  }

  /** Adds a database, or replaces its row. */
  put(row: DatabaseRow): void {
    const entry = entryOf(row, this.#settings, this.#entries.get(row.database_id))
    this.#forget(row.database_id)
    this.#entries.set(row.database_id, entry)
    for (const [token, user] of tokensOf(row)) this.#byToken.set(token, { entry, user })
    for (const follower of this.#followers) follower.put(row)
    this.#changed(row.database_id)
  }

  /** Removes a database. */
  remove(databaseId: string): void {
    if (!this.#forget(databaseId)) return
    for (const follower of this.#followers) follower.remove(databaseId)
    this.#changed(databaseId)
  }

  /**
   * Hides the tokens of a database until the next `put`: new requests with them find no database here. Other requests are
   * not affected.
   */
  hideTokens(databaseId: string): void {
    const entry = this.#entries.get(databaseId)
    if (entry) this.#dropTokens(entry)
    this.#changed(databaseId)
  }

  /** Checks a password; `username` is undefined for the one-argument AUTH, which means `default`. */
  authenticate(databaseId: string, username: string | undefined, password: string): DataUser | undefined {
    const entry = this.#entries.get(databaseId)
    if (!entry) return undefined
    const { row } = entry
    const given = digest(password)
    const matches = [row.password, row.rest_token].map((expected) => timingSafeEqual(given, digest(expected)))
    const isReader = timingSafeEqual(given, digest(row.read_only_rest_token))
    const user = username ?? 'default'
    if (user === 'default') return matches.includes(true) ? user : undefined
    if (user === 'default_ro') return isReader ? user : undefined
    return isPasswordOf(entry.users.get(user), password) ? user : undefined
  }

  /** The database and user that a REST token logs in to. */
  byRestToken(token: string): { readonly database: ServedDatabase; readonly user: DataUser } | undefined {
    const found = this.#byToken.get(digestOfToken(token))
    return found && { database: found.entry.served, user: found.user }
  }

  /** Whether a token with this digest logs in to a database that is served. */
  hasToken(digest: string): boolean {
    return this.#byToken.has(digest)
  }

  /** Whether a database is served. */
  has(databaseId: string): boolean {
    return this.#entries.has(databaseId)
  }

  /** The row of a served database. */
  rowOf(databaseId: string): DatabaseRow | undefined {
    return this.#entries.get(databaseId)?.row
  }

  /** A served database, as the data plane sees it. */
  find(databaseId: string): ServedDatabase | undefined {
    return this.#entries.get(databaseId)?.served
  }

  /** All served databases. The same array until something changes. */
  list(): readonly ServedDatabase[] {
    this.#list ??= [...this.#entries.values()].map((entry) => entry.served)
    return this.#list
  }

  /** Calls `listener` with the id of each database that is added, changed or removed. Returns the unsubscribe function. */
  onChange(listener: (databaseId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Calls `put` for every served database, then notifies of each change. Returns the unsubscribe function. */
  follow(follower: DirectoryFollower): () => void {
    for (const { row } of this.#entries.values()) follower.put(row)
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  /** The engine login of a user. The database must be served. */
  engineCredentials(databaseId: string, user: DataUser): { username: string; password: string } {
    const entry = this.#entries.get(databaseId)
    if (!entry) throw new Error(`database ${databaseId} is not served`)
    // A user who was deleted meanwhile gets a login that no engine accepts.
    return { username: user, password: entry.secretOf(user) ?? '' }
  }

  /** The login with which the data plane queries the engine about itself. The database must be served. */
  observerCredentials(databaseId: string): { username: string; password: string } {
    const entry = this.#entries.get(databaseId)
    if (!entry) throw new Error(`database ${databaseId} is not served`)
    return { username: OBSERVER_USER, password: observerPasswordOf(entry.row) }
  }

  #forget(databaseId: string): boolean {
    const entry = this.#entries.get(databaseId)
    if (!entry) return false
    this.#dropTokens(entry)
    return this.#entries.delete(databaseId)
  }

  #dropTokens({ row }: Entry): void {
    for (const token of tokensOf(row).keys()) this.#byToken.delete(token)
  }

  #changed(databaseId: string): void {
    this.#list = undefined
    for (const listener of [...this.#listeners]) listener(databaseId)
  }
}

function isPasswordOf(user: StoredUser | undefined, given: string): boolean {
  const matches = (user ?? NOBODY).passwords.map((stored) => matchesPassword(stored, given))
  return user?.status === 'on' && matches.includes(true)
}

/** Compared when the user does not exist, so that the time does not reveal which users do. */
const NOBODY: Pick<StoredUser, 'passwords'> = { passwords: [{ password: '0'.repeat(64), token: '0'.repeat(64) }] }

/** All REST tokens of a database by their digest, each with its user. */
export function tokensOf(row: DatabaseRow): ReadonlyMap<string, DataUser> {
  const ofUsers = usersOf(row)
    .filter(({ status }) => status === 'on')
    .flatMap((user) => user.passwords.map((stored): [string, string] => [restTokenOf(user, stored), user.name]))
  const tokens: readonly [string, string][] = [
    [row.rest_token, 'default'],
    [row.read_only_rest_token, 'default_ro'],
    ...ofUsers,
  ]
  return new Map(tokens.map(([token, user]) => [digestOfToken(token), user]))
}

/** Compares two stored rows and nothing that a caller sends, so it needs no constant time. */
const haveSameSecrets = (one: DatabaseRow, other: DatabaseRow): boolean =>
  one.password === other.password &&
  one.rest_token === other.rest_token &&
  one.read_only_rest_token === other.read_only_rest_token

function entryOf(row: DatabaseRow, { plans, proxyTerminatesTls, domain }: ServingSettings, before?: Entry): Entry {
  const plan = planOf(row, plans)
  // One literal: V8 stores objects that are spread from others in tables, which take three times the memory.
  const served: ServedDatabase = {
    databaseId: row.database_id,
    owner: row.account_id,
    port: row.port,
    // A proxy cannot check client certificates for us, so a database that asks for them speaks TLS itself.
    tls: row.tls === 1 && (!proxyTerminatesTls || row.client_authority !== null),
    serverName: domain === undefined || row.tls === 0 ? undefined : `${row.slug}.${domain}`,
    clientAuthority: row.client_authority ?? undefined,
    loginEpoch: before ? before.served.loginEpoch + (haveSameSecrets(before.row, row) ? 0 : 1) : 0,
    userMarks: userMarksOf(row),
    allowedIpRanges: allowedIpsOf(row),
    requestsPerWrite: 1 + readRegionsOf(row).length,
    maxRequestBytes: plan.db_max_request_size,
    maxClients: plan.db_max_clients,
    maxEntryBytes: plan.db_max_entry_size,
    maxDataBytes: 'maxmemory' in settingsOf(row, plans) ? undefined : dataBoundOf(plan),
    maxCommandsPerSecond: plan.db_max_commands_per_second,
    maxRequestsPerMonth: plan.db_request_limit,
    maxBytesPerMonth: plan.max_bandwidth_per_month,
    idleTimeoutMs: plan.db_conn_idle_timeout / NS_PER_MS,
    scriptTimeoutMs: plan.db_lua_timeout / NS_PER_MS,
    scriptMsPerMinute: plan.db_lua_credits_per_min / NS_PER_MS,
  }
  return new Entry(row, served)
}

const NO_MARKS: ServedDatabase['userMarks'] = {}

function userMarksOf(row: DatabaseRow): ServedDatabase['userMarks'] {
  const users = usersOf(row)
  if (users.length === 0) return NO_MARKS
  return Object.fromEntries(users.map(({ name, secret }) => [name, digestOfToken(secret)]))
}
