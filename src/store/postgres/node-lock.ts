import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type pg from 'pg'
import { pause, systemClock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/**
 * Key of the advisory lock of a store; an arbitrary constant. Older versions hold it exclusively while they run. Every
 * connection of a server holds it, so it is free only while no server uses the store.
 */
export const NODE_LOCK = 7_210_001
/** The server may need a moment to notice that the previous node was killed. */
const LOCK_WAIT_MS = 2_000
const LOCK_LOOK_MS = 100
const LOCK_NOT_AVAILABLE = '55P03'

const TAKE = 'SELECT pg_try_advisory_lock($1)::int AS got'
const SHARE = 'SELECT pg_try_advisory_lock_shared($1)::int AS got'
const LET_GO = 'SELECT pg_advisory_unlock($1)'

const HOLD = `UPDATE node_holder SET incarnation = incarnation + 1, holder = $1, name = $2, since = $3`
const HOLDER = 'SELECT holder, name, since FROM node_holder'
const HAS_HOLDER = `SELECT (to_regclass('node_holder') IS NOT NULL)::int AS there`
/** Sessions that hold the lock in this database. Only those of the same user show their address. */
const LOCKING = `SELECT DISTINCT coalesce(host(client_addr), 'a local socket') AS address
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND objid = ${NODE_LOCK} AND granted AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  ORDER BY 1 LIMIT 3`

interface Holder {
  readonly holder: string
  readonly name: string
  readonly since: number
}

/**
 * Keeps two nodes from using one store, by an advisory lock and the row of `node_holder`.
 *
 * A starting node takes the lock exclusively, writes itself into the row, and keeps the lock shared. Every other
 * connection takes the lock shared too when it is made, and then reads the row. So the row cannot change while any
 * connection that can write is open on the server: a second node must wait until all of them have ended. A node whose
 * connections ended on the server without its knowledge finds another holder as soon as it connects again, and ends.
 *
 * The lock is tried again and again and never waited for: PostgreSQL would queue shared requests behind a waiting
 * exclusive one, so a second node that is started by mistake would stop the first one from connecting.
 *
 * When several nodes may use a store, the row names their cluster: a node that belongs to it keeps the lock shared without
 * taking it first, and what only one of them may do is decided by rows with epochs.
 */
export class NodeLock {
  readonly #holder = randomUUID()
  readonly #onTaken: (error: Error) => void
  #taken: HomeportError | undefined

  /** @param onTaken called once, when another node has taken the store. */
  constructor(onTaken: (error: Error) => void) {
    this.#onTaken = onTaken
  }

  /**
   * Takes the store for this node; afterwards the connection holds the lock shared.
   * @param prepare runs while no other node can have a connection: the migration, which also creates the row.
   * @throws HomeportError `store_in_use` when another node has a connection.
   */
  async take(client: pg.ClientBase, prepare: () => Promise<void>): Promise<void> {
    if (!(await lock(client, TAKE))) throw await inUse(client)
    await prepare()
    await client.query(HOLD, [this.#holder, `${hostname()}, process ${process.pid}`, systemClock.now()])
    await client.query(SHARE, [NODE_LOCK])
    await client.query(LET_GO, [NODE_LOCK])
  }

  /**
   * Guards a new connection. It must not be used if this rejects.
   * @throws HomeportError `store_in_use` when another node has taken the store; then this one has to end.
   */
  async guard(client: pg.ClientBase): Promise<void> {
    if (this.#taken) throw this.#taken
    if (!(await lock(client, SHARE))) {
      // It may still fail to start. When it has started, the row says so.
      throw Object.assign(new Error('another Homeport server is starting on this store'), { code: LOCK_NOT_AVAILABLE })
    }
    // A statement of its own, after the lock: it sees whatever was committed before the lock was free.
    const { rows } = await client.query<Holder>(HOLDER)
    if (rows[0]?.holder !== this.#holder) throw await this.#end(client)
  }

  async #end(client: pg.ClientBase): Promise<HomeportError> {
    const error = this.#taken ?? (await inUse(client))
    if (!this.#taken) {
      this.#taken = error
      this.#onTaken(error)
    }
    return error
  }
}

async function lock(client: pg.ClientBase, statement: string): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += LOCK_LOOK_MS) {
    const { rows } = await client.query<{ got: number }>(statement, [NODE_LOCK])
    if (rows[0]?.got === 1) return true
    if (waitedMs >= LOCK_WAIT_MS) return false
    await pause(systemClock, LOCK_LOOK_MS)
  }
}

/** The error that tells which node has the store, as far as the store knows. */
async function inUse(client: pg.ClientBase): Promise<HomeportError> {
  const { rows: addresses } = await client.query<{ address: string }>(LOCKING)
  const from = addresses.map(({ address }) => `connected from ${address}`)
  const { rows: found } = await client.query<{ there: number }>(HAS_HOLDER)
  const { rows } = found[0]?.there === 1 ? await client.query<Holder>(HOLDER) : { rows: [] }
  const names = rows.filter(({ name }) => name !== '').map(nameOf)
  return new HomeportError('store_in_use', { holder: [...names, ...from].join(', ') || 'an older version' })
}

const nameOf = ({ name, since }: Holder): string => `host ${name}, since ${new Date(since).toISOString()}`
