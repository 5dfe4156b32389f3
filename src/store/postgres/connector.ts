import pg from 'pg'
import { systemClock } from '../../base/index.js'
import type { PostgresTarget } from '../../config/index.js'
import { connectionSettings } from './connection.js'
import { READ_ONLY, reasonOf } from './errors.js'

/** Time limit for a connection to a host: shorter when others can be tried. */
const CONNECT_TIMEOUT_MS = { only: 10_000, ofSeveral: 5_000 }
const GREETING_TIMEOUT_MS = 5_000
/** Time that a connection has to end politely. */
const END_TIMEOUT_MS = 2_000

/**
 * What the server enforces on our connections, so that a node that is paused, or whose machine is gone, blocks others only
 * for a moment; and what the defaults of the server must not change. Set by a statement and not at the start of a
 * connection, because poolers refuse unknown start options. A server that does not know a setting is left without it.
 */
const SETTINGS = {
  default_transaction_isolation: 'read committed', // of a statement without a transaction around it
  bytea_output: 'hex',
  standard_conforming_strings: 'on', // a backslash in a statement of ours is one
  statement_timeout: '30s',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '3s',
  transaction_timeout: '30s', // from PostgreSQL 17 on
  idle_session_timeout: '0', // an idle connection holds the lock of the node
  // A lost client is noticed after 10 to 15 seconds when it is silent, after 5 when an acknowledgement is pending.
  tcp_user_timeout: '5s',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '2',
  // Every large table is read by an index. A statement that is planned while its table is nearly empty would read the
  // whole table, and would keep that plan until the server has analyzed the table.
  enable_seqscan: 'off',
} as const

/** For long work that nobody waits for: a migration, a check of all contents. */
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

/** The clock of PostgreSQL may differ from ours by this much: times in the store come from all that write. */
export const MAX_CLOCK_DIFFERENCE_MS = 2_000

/** A connection that is ready for use. */
export interface Session {
  readonly client: pg.Client
  readonly server: ServerFacts
}

/** What a server says of itself when a connection is made. */
export interface ServerFacts {
  /** Differs between servers, and between the lives of one. */
  readonly life: string
  /** 180000 is version 18. */
  readonly version: number
  /** The process that serves the connection, as the server sees it. */
  readonly backend: number
  /** Whether a pooler stands between: it gives out process numbers of its own. */
  readonly isPooled: boolean
  /** How far its clock is ahead of ours, milliseconds; negative when it is behind. 0 within the time of the question. */
  readonly clockAheadMs: number
}

/** Connects to the first host of a store that accepts writes. */
export class Connector {
  readonly #target: PostgresTarget
  /** The host that accepted the last connection. */
  #favourite = 0

  constructor(target: PostgresTarget) {
    this.#target = target
  }

  /**
   * Tries all hosts in turn, beginning with the one that accepted last.
   * @throws the error of the host, or one error with the reasons of all hosts.
   */
  async connect(work: Work = 'short'): Promise<Session> {
    const { urls } = this.#target
    const failures: unknown[] = []
    for (let turn = 0; turn < urls.length; turn++) {
      const index = (this.#favourite + turn) % urls.length
      try {
        const session = await open(urls[index] ?? '', urls.length, work)
        this.#favourite = index
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

async function open(url: string, hosts: number, work: Work): Promise<Session> {
  const timeoutMs = hosts === 1 ? CONNECT_TIMEOUT_MS.only : CONNECT_TIMEOUT_MS.ofSeveral
  const client = new pg.Client(connectionSettings(url, timeoutMs, work))
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

/** Sets what a session needs. A server that does not accept writes counts as lost: another host may have its place. */
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

/** How far the clock of the server is ahead of ours, milliseconds, now. */
export async function clockAheadMs(client: pg.ClientBase): Promise<number> {
  const sentMs = systemClock.now()
  const { rows } = await client.query<{ now: number }>(NOW)
  return aheadMs(rows[0]?.now ?? sentMs, sentMs, systemClock.now())
}

/** The answer was read at some moment between sending and receiving, so a difference within that time is none. */
function aheadMs(now: number, sentMs: number, receivedMs: number): number {
  if (now > receivedMs) return Math.round(now - receivedMs)
  return now < sentMs ? Math.round(now - sentMs) : 0
}

/** Ends a connection; one whose server does not answer is dropped. */
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
