import { X509Certificate } from 'node:crypto'
import type pg from 'pg'
import { systemClock } from '../../base/index.js'
import { targetOf } from './connection.js'
import { MAX_CONNECTIONS, UPKEEP_CONNECTIONS } from './connections.js'
import { Connector, end, MAX_CLOCK_DIFFERENCE_MS, type ServerFacts } from './connector.js'
import { lendsByTransaction } from './pooler.js'

/** A problem of the PostgreSQL server that the operator should know of. */
export interface ServerFinding {
  /** `fail`: commits may be lost, or Homeport does not start. `warn`: it works, but not as it should. */
  readonly status: 'warn' | 'fail'
  readonly found: string
  readonly todo: string
}

/** Result of the check of a server. */
export interface ServerReport {
  /** Version and encryption, in words. */
  readonly about: string
  readonly findings: readonly ServerFinding[]
}

/** Settings and facts on which the findings depend; settings have their PostgreSQL names. */
export interface ServerSettings {
  readonly fsync: string
  readonly full_page_writes: string
  readonly synchronous_commit: string
  readonly autovacuum: string
  readonly track_counts: string
  readonly statement_timeout: string
  readonly lock_timeout: string
  readonly idle_in_transaction_session_timeout: string
  readonly server_encoding: string
  readonly data_checksums: string
  /** Connections that users who are not superusers may have in total. The two limits below are -1 for none. */
  readonly freeForAll: number
  readonly roleLimit: number
  readonly databaseLimit: number
  /** How many nodes share the store, with those that this machine starts; 0 for a server that is alone. */
  readonly nodes: number
  /** Whether connections go through a pooler that is not in session mode. */
  readonly lendsByTransaction: boolean
  /** Whether the user may create tables. */
  readonly mayCreate: number
  /** Whether no server has used the database yet. */
  readonly isNew: number
  readonly isEncrypted: number
  readonly isLocal: number
  /** Age of the oldest transaction that keeps dead rows from being removed, seconds. */
  readonly oldestTransactionSeconds: number
  readonly idleSlots: string
  /** Until when the authority of the nodes is valid, Unix milliseconds; NaN: unreadable. Absent: there is none. */
  readonly authorityUntilMs?: number
}

/** Older versions get no more corrections from the PostgreSQL project; Homeport is tested with 18 and was tried with 15. */
const OLDEST_MAINTAINED = 150_000
/** Connections besides the pools: one that takes the lock and migrates at the start, and one for the operator. */
const OTHER_CONNECTIONS = 2
const OLD_TRANSACTION_SECONDS = 600
const DAY_MS = 86_400_000
/** To replace the authority, all nodes have to stop. */
const AUTHORITY_SOON_DAYS = 180

const SETTINGS = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'autovacuum',
  'track_counts',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'server_encoding',
  'data_checksums',
] as const

const READ = `SELECT ${SETTINGS.map((name) => `current_setting('${name}', true) AS ${name}`).join(', ')},
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true), '0')::int
    - (SELECT count(*)::int FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND application_name <> 'homeport') AS "freeForAll",
  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS "roleLimit",
  (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS "databaseLimit",
  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
  to_regclass('schema_migrations') IS NULL AS "isNew",
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "isEncrypted",
  inet_client_addr() IS NULL OR inet_client_addr() <<= '127.0.0.0/8' OR inet_client_addr() = '::1' AS "isLocal",
  coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'), 0)
    AS "oldestTransactionSeconds",
  coalesce((SELECT string_agg(slot_name, ', ') FROM pg_replication_slots
    WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)), '') AS "idleSlots"`

/** The nodes that this machine starts: the first of them, and how many there are. */
export interface OwnNodes {
  readonly first: string
  readonly count: number
}

/**
 * Checks the settings of the server that a URL leads to.
 * @param own absent: the server is alone.
 * @throws HomeportError `store_not_opened` for an invalid URL, otherwise the driver's error.
 */
export async function checkPostgresServer(url: string, own?: OwnNodes): Promise<ServerReport> {
  const connector = new Connector(targetOf(url))
  const session = await connector.connect()
  const { client, server } = session
  try {
    const settings = {
      ...(await readSettings(client)),
      nodes: own ? await countNodes(client, own) : 0,
      ...(await authorityOf(client)),
      lendsByTransaction: server.isPooled && (await lendsByTransaction(connector, session)),
    }
    return { about: aboutOf(server, settings), findings: judgeServer(server, settings) }
  } finally {
    await end(client)
  }
}

async function countNodes(client: pg.Client, { first, count }: OwnNodes): Promise<number> {
  const { rows: found } = await client.query<{ there: number }>("SELECT to_regclass('nodes') IS NOT NULL AS there")
  if (found[0]?.there !== 1) return count
  const { rows } = await client.query<{ name: string }>("SELECT name FROM nodes WHERE state IN ('live', 'draining')")
  return rows.some(({ name }) => name === first) ? rows.length : rows.length + count
}

async function authorityOf(client: pg.Client): Promise<Pick<ServerSettings, 'authorityUntilMs'>> {
  const known = "SELECT to_regclass('cluster_authority') IS NOT NULL AS there"
  if ((await client.query<{ there: number }>(known)).rows[0]?.there !== 1) return {}
  const { rows } = await client.query<{ certificate: string }>('SELECT certificate FROM cluster_authority')
  return rows[0] ? { authorityUntilMs: endOf(rows[0].certificate) } : {}
}

function endOf(certificate: string): number {
  try {
    return Date.parse(new X509Certificate(certificate).validTo)
  } catch {
    return Number.NaN
  }
}

async function readSettings(client: pg.Client): Promise<Omit<ServerSettings, 'nodes' | 'lendsByTransaction'>> {
  const { rows } = await client.query<ServerSettings>(READ)
  const [found] = rows
  if (!found) throw new Error('the server did not answer')
  return found
}

function aboutOf({ version, isPooled }: ServerFacts, { isEncrypted, data_checksums }: ServerSettings): string {
  const parts = [
    `PostgreSQL ${Math.floor(version / 10_000)}.${version % 10_000}`,
    isEncrypted === 1 ? 'TLS' : 'no TLS',
    `page checksums ${data_checksums}`,
    ...(isPooled ? ['through a pooler'] : []),
  ]
  return parts.join(', ')
}

/** The findings about a server, most serious first. */
export function judgeServer(server: ServerFacts, settings: ServerSettings, nowMs = systemClock.now()): ServerFinding[] {
  return [
    ...judgeDurability(settings),
    ...judgeRights(settings),
    ...judgeFacts(server, settings),
    ...judgeAuthority(settings, nowMs),
    ...judgeConnections(settings),
    ...judgeRest(server, settings),
  ]
}

const warn = (found: string, todo: string): ServerFinding => ({ status: 'warn', found, todo })
const fail = (found: string, todo: string): ServerFinding => ({ status: 'fail', found, todo })

function judgeDurability(settings: ServerSettings): ServerFinding[] {
  const risks = {
    fsync: 'A power cut can destroy the whole database.',
    full_page_writes: 'A power cut can destroy pages, unless the file system writes them atomically.',
    synchronous_commit: 'A crash can lose what was acknowledged in the last moments.',
  }
  const off = (['fsync', 'full_page_writes', 'synchronous_commit'] as const)
    .filter((name) => settings[name] === 'off')
    .map((name) => fail(`${name} is off`, `${risks[name]} Set ${name} = on.`))
  if (settings.synchronous_commit !== 'local') return off
  const todo = 'A failover can lose what was acknowledged, also to a synchronous standby. Set synchronous_commit = on.'
  return [...off, warn('synchronous_commit is local', todo)]
}

function judgeRights({ mayCreate, isNew }: ServerSettings): ServerFinding[] {
  if (mayCreate === 1) return []
  const todo = 'Make it the owner of the database, or GRANT CREATE ON SCHEMA to it; the search_path names the schema.'
  if (isNew === 1) return [fail('the user may not create tables', todo)]
  return [warn('the user may not create tables, so an upgrade cannot change the schema', todo)]
}

function judgeFacts(
  { version, clockAheadMs, isPooled }: ServerFacts,
  { lendsByTransaction }: ServerSettings,
): ServerFinding[] {
  const findings: ServerFinding[] = []
  if (Math.abs(clockAheadMs) > MAX_CLOCK_DIFFERENCE_MS) {
    const seconds = (Math.abs(clockAheadMs) / 1_000).toFixed(1)
    const found = `its clock is ${seconds} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine`
    findings.push(fail(found, 'Synchronise both clocks (NTP). Homeport does not start with more than 2 s.'))
  }
  if (version < OLDEST_MAINTAINED) {
    const found = `version ${Math.floor(version / 10_000)} is no longer maintained`
    findings.push(warn(found, 'Upgrade PostgreSQL: 15 or later, best 18, with which Homeport is tested.'))
  }
  if (lendsByTransaction) {
    findings.push(fail('connected through a pooler in transaction mode', 'Use session mode, or connect directly.'))
  } else if (isPooled) {
    const todo =
      'Its session mode works, but a direct connection is better: the pooler keeps the connections of a lost server.'
    findings.push(warn('connected through a pooler', todo))
  }
  return findings
}

function judgeAuthority({ authorityUntilMs }: ServerSettings, nowMs: number): ServerFinding[] {
  if (authorityUntilMs === undefined || authorityUntilMs - nowMs >= AUTHORITY_SOON_DAYS * DAY_MS) return []
  const todo = 'Nodes cannot reach each other without it. Replace it: "The authority of the nodes" in docs/nodes.md.'
  if (Number.isNaN(authorityUntilMs)) return [fail('the certificate authority of the nodes cannot be read', todo)]
  const day = new Date(authorityUntilMs).toISOString().slice(0, 10)
  if (authorityUntilMs <= nowMs) return [fail(`the certificate authority of the nodes expired on ${day}`, todo)]
  return [warn(`the certificate authority of the nodes is valid until ${day}`, todo)]
}

function judgeConnections({ freeForAll, roleLimit, databaseLimit, nodes }: ServerSettings): ServerFinding[] {
  const kept = nodes === 0 ? MAX_CONNECTIONS : nodes * (MAX_CONNECTIONS + UPKEEP_CONNECTIONS)
  const needed = kept + OTHER_CONNECTIONS
  const free = Math.min(freeForAll, ...[roleLimit, databaseLimit].filter((limit) => limit >= 0))
  if (free >= needed) return []
  const by = nodes > 1 ? ` by ${nodes} nodes` : ''
  const found = `space for ${Math.max(free, 0)} connections, ${needed} are needed${by}`
  return [warn(found, 'Raise max_connections, or the limit of the role or database; or close other clients.')]
}

function judgeRest(server: ServerFacts, settings: ServerSettings): ServerFinding[] {
  const findings: ServerFinding[] = []
  if (settings.server_encoding !== 'UTF8') {
    findings.push(fail(`its encoding is ${settings.server_encoding}`, "Create the database with ENCODING 'UTF8'."))
  }
  if (settings.autovacuum !== 'on' || settings.track_counts !== 'on') {
    findings.push(warn('autovacuum is off', 'Dead rows pile up and slow down everything. Set autovacuum = on.'))
  }
  if (
    ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'].some((name) => isUnset(settings, name))
  ) {
    findings.push(
      warn('it does not keep the time limits of Homeport', 'A proxy in between resets settings: connect directly.'),
    )
  }
  if (settings.isEncrypted !== 1 && settings.isLocal !== 1 && !server.isPooled) {
    findings.push(warn('the connection is not encrypted', 'Add ?sslmode=verify-full to the URL.'))
  }
  if (settings.oldestTransactionSeconds > OLD_TRANSACTION_SECONDS) {
    const minutes = Math.floor(settings.oldestTransactionSeconds / 60)
    const todo = 'End it: vacuum cannot remove rows that died since. See pg_stat_activity.'
    findings.push(warn(`a transaction has been open for ${minutes} minutes`, todo))
  }
  if (settings.idleSlots !== '') {
    const todo = 'Drop it if nothing follows it any more: it keeps old rows and log files.'
    findings.push(warn(`unused replication slot: ${settings.idleSlots}`, todo))
  }
  return findings
}

const isUnset = (settings: ServerSettings, name: string): boolean => Reflect.get(settings, name) === '0'
