import pg from 'pg'
import { systemClock } from '../../base/index.js'
import type { PostgresTarget } from '../../config/index.js'
import { connectionSettings, type Lookup } from './connection.js'
import { READ_ONLY, reasonOf } from './errors.js'

/** Time limit for a connection to a host: shorter when others can be tried. */
const CONNECT_TIMEOUT_MS = { only: 10_000, ofSeveral: 5_000 }
const GREETING_TIMEOUT_MS = 5_000
/** Time limit for an orderly end of a connection; then its socket is closed. */
const END_TIMEOUT_MS = 2_000

/**
 * Settings of Homeport's connections. The server enforces the time limits, so that a node that is paused, or whose machine
 * is gone, blocks others only briefly; the other settings must not depend on the server's defaults. A statement sets them,
 * because poolers refuse unknown options at the start of a connection. Settings that a server does not know are skipped.
 */
const SETTINGS = {
  default_transaction_isolation: 'read committed', // of a statement without a transaction around it
  bytea_output: 'hex',
  standard_conforming_strings: 'on', // a backslash in a text is an ordinary character
  statement_timeout: '30s',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '3s',
  transaction_timeout: '30s', // from PostgreSQL 17 on
  idle_session_timeout: '0', // an idle connection holds the lock of the node
  // The server notices a lost client after 10 to 15 seconds, or after 5 when an acknowledgement is pending.
  tcp_user_timeout: '5s',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '2',
  // Every large table is read through an index. PostgreSQL would plan to read the whole table while the table is nearly
  // empty, and would keep that plan until it has analyzed the table.
  enable_seqscan: 'off',
} as const

/** Settings for long work, without time limits: a migration, or a check of all contents. */
const WITHOUT_LIMITS = {
  ...SETTINGS,
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  transaction_timeout: '0',
  enable_seqscan: 'on',
} as const

/** `short`: transactions, each bounded in time. `long`: a migration, or a check of all contents. */
export type Work = 'short' | 'long'

/** The most that the clock of PostgreSQL may differ from this machine's: times in the store come from several clocks. */
export const MAX_CLOCK_DIFFERENCE_MS = 2_000

/** A connection that is ready for use. */
export interface Session {
  readonly client: pg.Client
  readonly server: ServerFacts
}

/** Facts about a server, read when a connection is made. */
export interface ServerFacts {
  /** Start time of the server: differs between servers, and after a restart. */
  readonly life: string
  /** 180000 is version 18. */
  readonly version: number
  /** The process that serves the connection, as the server sees it. */
  readonly backend: number
  /** Whether the connection goes through a pooler, which reports process numbers of its own. */
  readonly isPooled: boolean
  /** How far the server's clock is ahead of this machine's, milliseconds; negative when behind. See `aheadMs`. */
  readonly clockAheadMs: number
}

/** Connects to the first host of a store that accepts writes. */
export class Connector {
  readonly #target: PostgresTarget
  readonly #lookup: Lookup | undefined
  /** The host that accepted the last connection. */
  #lastHost = 0

  /** @param lookup for tests. Default: names are looked up like those of destinations. */
  constructor(target: PostgresTarget, lookup?: Lookup) {
    this.#target = target
    this.#lookup = lookup
  }

  /**
   * Tries all hosts in turn, beginning with the one that accepted last.
   * @throws the error of the host, or one error with the reasons of all hosts.
   */
  async connect(work: Work = 'short'): Promise<Session> {
    const { urls } = this.#target
    const failures: unknown[] = []
    for (let turn = 0; turn < urls.length; turn++) {
      const index = (this.#lastHost + turn) % urls.length
      try {
        const session = await open(urls[index] ?? '', urls.length, work, this.#lookup)
        this.#lastHost = index
        return session
      } catch (error) {
        failures.push(error)
      }
    }
    throw failures.length === 1 ? failures[0] : allFailed(failures)
  }
}

function allFailed(failures: readonly unknown[]): Error {
  const reasons = failures.map((failure, index) => `host ${index + 1}: ${reasonOf(failure)}`)
  return Object.assign(new Error(reasons.join('; ')), { code: '08001' })
}

async function open(url: string, hosts: number, work: Work, lookup: Lookup | undefined): Promise<Session> {
  const timeoutMs = hosts === 1 ? CONNECT_TIMEOUT_MS.only : CONNECT_TIMEOUT_MS.ofSeveral
  const client = new pg.Client(connectionSettings(url, timeoutMs, work, lookup))
  // A lost connection fails its statements. Without a listener, the same error would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return { client, server: await greet(client, work) }
  } catch (error) {
    await end(client)
    throw error
  }
}

const set = (name: string, value: string): string =>
  `CASE WHEN current_setting('${name}', true) IS NOT NULL THEN set_config('${name}', '${value}', false) END`

const setAll = (settings: Record<string, string>): string =>
  Object.entries(settings)
    .map(([name, value]) => set(name, value))
    .join(', ')

const greeting = (
  work: Work,
): string => `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
  extract(epoch from pg_postmaster_start_time())::text AS life, current_setting('server_version_num')::int AS version,
  pg_backend_pid() AS backend, extract(epoch from clock_timestamp()) * 1000 AS now, ${setAll(work === 'short' ? SETTINGS : WITHOUT_LIMITS)}`

interface Greeting {
  readonly isReadOnly: number
  readonly life: string
  readonly version: number
  readonly backend: number
  readonly now: number
}

/** Applies the settings and reads the facts. A server that does not accept writes counts as lost: try the next host. */
async function greet(client: pg.Client, work: Work): Promise<ServerFacts> {
  const sentMs = systemClock.now()
  const question = { text: greeting(work), query_timeout: GREETING_TIMEOUT_MS }
  const { rows } = await client.query<Greeting>(question)
  const [found] = rows
  if (!found) throw new Error('the server did not answer the greeting')
  if (found.isReadOnly === 1) {
    const why = 'it is a standby, or default_transaction_read_only is on for it, the database or the role'
    throw Object.assign(new Error(`the server accepts no writes: ${why}`), { code: READ_ONLY })
  }
  const { life, version, backend, now } = found
  const isPooled = Reflect.get(client, 'processID') !== backend
  return { life, version, backend, isPooled, clockAheadMs: aheadMs(now, sentMs, systemClock.now()) }
}

const NOW = 'SELECT extract(epoch from clock_timestamp()) * 1000 AS now'

/** Reads how far the clock of the server is ahead of this machine's, milliseconds. */
export async function clockAheadMs(client: pg.ClientBase): Promise<number> {
  const sentMs = systemClock.now()
  const { rows } = await client.query<{ now: number }>(NOW)
  return aheadMs(rows[0]?.now ?? sentMs, sentMs, systemClock.now())
}

/** The server read its clock between sending and receiving, so a time within that interval counts as no difference. */
function aheadMs(now: number, sentMs: number, receivedMs: number): number {
  if (now > receivedMs) return Math.round(now - receivedMs)
  return now < sentMs ? Math.round(now - sentMs) : 0
}

/** Ends a connection. If its server does not answer, closes the socket. */
export async function end(client: pg.Client): Promise<void> {
  const socket: unknown = Reflect.get(Reflect.get(client, 'connection') ?? {}, 'stream')
  const drop = systemClock.after(END_TIMEOUT_MS, () => hasDestroy(socket) && socket.destroy())
  try {
    await client.end()
  } catch {
    // It is gone already.
  } finally {
    drop.cancel()
  }
}

const hasDestroy = (value: unknown): value is { destroy(): void } =>
  typeof value === 'object' && value !== null && 'destroy' in value && typeof value.destroy === 'function'
