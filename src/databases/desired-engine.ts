import { createHmac } from 'node:crypto'
import { NS_PER_MS, PLAN_NAMES, type Plan, type PlanName, type PlanTable } from '../contract/databases/plans.js'
import type { EngineSpec, MemberSpec } from '../fleet/index.js'
import { type Suspended, suspensionOf } from './suspended.js'
import type { DatabaseRow } from './transactions/database-row.js'
import {
  effectiveSettings,
  engineUserOf,
  FORBIDDEN_TO_ALL,
  readSettings,
  readUsers,
  type SettingBounds,
  type StoredUser,
} from './users/index.js'

/**
 * Allow all commands on all keys and channels, except commands that manage the engine. Excluded commands that only touch
 * data are granted again. The gateway refuses more; these rules are the second line of defence behind it.
 */
const DEFAULT_RULES = [
  '~* &* +@all',
  FORBIDDEN_TO_ALL,
  '+flushall +flushdb +keys +monitor +restore +sort +sort_ro +client|list +client|unblock',
].join(' ')

/**
 * Reads of keys only: no scripts, no publishing, no scans of all keys. `%R~*` makes the engine refuse a write even
 * from a command of the category `@read`.
 */
const READ_ONLY_RULES =
  '%R~* -@all +@read +@connection +@transaction -@dangerous -scan -clusterscan +time +acl|whoami +acl|cat +acl|genpass +client|list'

/** The name of a stored database's plan. */
export function planNameOf(row: DatabaseRow): PlanName {
  const name = PLAN_NAMES.find((known) => known === row.plan)
  if (!name) throw new Error(`database ${row.database_id} has the unknown plan ${row.plan}`)
  return name
}

/** The plan of a stored database. */
export function planOf(row: DatabaseRow, plans: PlanTable): Plan {
  return plans[planNameOf(row)]
}

/** How much data a plan holds, bytes: the smaller of its memory and disk limits. */
export function dataBoundOf(plan: Plan): number {
  return Math.min(plan.db_memory_threshold, plan.db_disk_threshold)
}

/** Read regions in the order of the request. */
export function readRegionsOf(row: Pick<DatabaseRow, 'database_id' | 'read_regions'>): readonly string[] {
  return textsOf(row, 'read_regions')
}

/** Addresses and networks that may connect; empty means all. */
export function allowedIpsOf(row: DatabaseRow): readonly string[] {
  return textsOf(row, 'allowed_ips')
}

/** The users that the owner created; on plan `free` they stay stored but inactive. */
export function usersOf(row: DatabaseRow): readonly StoredUser[] {
  return row.plan === 'free' ? [] : readUsers(row)
}

const NONE: readonly never[] = []

function textsOf<Column extends 'read_regions' | 'allowed_ips'>(
  row: Pick<DatabaseRow, 'database_id' | Column>,
  column: Column,
): readonly string[] {
  if (row[column] === '[]') return NONE
  const texts: unknown = JSON.parse(row[column])
  if (Array.isArray(texts) && texts.every((text) => typeof text === 'string')) return texts
  throw new Error(`database ${row.database_id} has unreadable ${column}`)
}

/** The bounds for the settings of a stored database. */
export function settingBoundsOf(row: DatabaseRow, plans: PlanTable): SettingBounds {
  const plan = planOf(row, plans)
  const scriptTimeoutMs = plan.db_lua_timeout / NS_PER_MS
  return { eviction: row.eviction === 1, scriptTimeoutMs, maxMemoryBytes: dataBoundOf(plan) }
}

/** The settings that clients have changed, as far as the plan and eviction allow them now. */
export function settingsOf(row: DatabaseRow, plans: PlanTable): Readonly<Record<string, string>> {
  return effectiveSettings(readSettings(row), settingBoundsOf(row, plans))
}

/**
 * The password with which the data plane queries the engines of a database about themselves (INFO, MEMORY and others).
 * It is derived from the other credentials, so a change of those closes its connections too.
 */
export function observerPasswordOf({ database_id: databaseId, password, rest_token: token }: DatabaseRow): string {
  return createHmac('sha256', password).update(`observer ${databaseId} ${token}`).digest('hex')
}

/**
 * The only read region whose replicas this node runs for its databases; undefined: all. If this node serves one region,
 * other nodes keep the replicas of the other regions (`replicas/`).
 */
export function regionOf({ node, region }: { readonly node?: string; readonly region?: string | undefined }) {
  return node === undefined ? undefined : region
}

/**
 * What the fleet has to run for a database.
 * @param only see `regionOf`.
 */
export function engineSpecOf(row: DatabaseRow, plans: PlanTable, only?: string): EngineSpec {
  const replicas = readRegionsOf(row)
    .filter((region) => only === undefined || region === only)
    .map((region): MemberSpec => ({ region, role: 'replica' }))
  return {
    databaseId: row.database_id,
    members: [{ region: row.primary_region, role: 'primary' }, ...replicas],
    users: [
      { name: 'default', password: row.password, rules: DEFAULT_RULES },
      { name: 'default_ro', password: row.read_only_rest_token, rules: READ_ONLY_RULES },
      ...usersOf(row).map(engineUserOf),
    ],
    maxMemoryBytes: dataBoundOf(planOf(row, plans)),
    eviction: row.eviction === 1,
    persistence: row.persistence,
    keyspaceEvents: row.keyspace_events,
    settings: settingsOf(row, plans),
    observerPassword: observerPasswordOf(row),
    state: 'running',
    data: row.modifying_state === 'creating' ? 'may-begin' : 'must-exist',
  }
}

/** What `DesiredEngines` is built from. */
export interface DesiredEnginesDeps {
  readonly plans: PlanTable
  /** The row of a served database, from memory. */
  readonly rowOf: (databaseId: string) => DatabaseRow | undefined
  /** Why a database is suspended, apart from its budget. */
  readonly suspended: Suspended
  /** See `regionOf`. */
  readonly only: string | undefined
}

/**
 * The desired engines of all served databases, as waking and creation need them. Creation wakes databases through
 * `sleep/`, and `sleep/` has to know which databases are being created: both know only this class.
 */
export class DesiredEngines {
  readonly #deps: DesiredEnginesDeps
  readonly #creating = new Set<string>()
  #blocked: ReadonlySet<string> = new Set()

  constructor(deps: DesiredEnginesDeps) {
    this.#deps = deps
  }

  /** The desired state of the engines of a database; undefined when they must not run. */
  specOf(databaseId: string): EngineSpec | undefined {
    const row = this.#deps.rowOf(databaseId)
    if (!row || this.#blocked.has(databaseId)) return undefined
    // The row in memory says `creating` until the next change, so the set decides whether engines may start without data.
    const data = this.#creating.has(databaseId) ? 'may-begin' : 'must-exist'
    const { plans, only } = this.#deps
    return { ...engineSpecOf(row, plans, only), data }
  }

  /** How long a database may be idle before it falls asleep, milliseconds; 0 for one that is not served. */
  idleMsOf(databaseId: string): number {
    const row = this.#deps.rowOf(databaseId)
    return row ? planOf(row, this.#deps.plans).db_store_max_idle / NS_PER_MS : 0
  }

  /** Whether requests of clients are served; a suspended database refuses them. */
  servesClients(databaseId: string): boolean {
    const row = this.#deps.rowOf(databaseId)
    return !row || suspensionOf(row, this.#deps.suspended) === undefined
  }

  /** Whether this process is creating the database. */
  isBeingCreated(databaseId: string): boolean {
    return this.#creating.has(databaseId)
  }

  /** Lets the engines of a database start without data until `endCreation`. */
  beginCreation(databaseId: string): void {
    this.#creating.add(databaseId)
  }

  /** The creation has settled: from now on the data must exist. */
  endCreation(databaseId: string): void {
    this.#creating.delete(databaseId)
  }

  /** Keeps the engines of these databases from starting until the server restarts, because their data is not in place. */
  block(databaseIds: ReadonlySet<string>): void {
    this.#blocked = databaseIds
  }
}
