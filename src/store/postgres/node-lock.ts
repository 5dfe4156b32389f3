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
/** Another node of the cluster may be migrating the store. */
const JOIN_WAIT_MS = 30_000
const LOCK_LOOK_MS = 100
const LOCK_NOT_AVAILABLE = '55P03'

const TAKE = 'SELECT pg_try_advisory_lock($1)::int AS got'
const SHARE = 'SELECT pg_try_advisory_lock_shared($1)::int AS got'
const LET_GO = 'SELECT pg_advisory_unlock($1)'
const UNSHARE = 'SELECT pg_advisory_unlock_shared($1)'

const HOLD = `UPDATE node_holder SET incarnation = incarnation + 1, holder = $1, name = $2, since = $3`
const HOLDER = 'SELECT holder, name, since FROM node_holder'
/** Prefix of the holder of a store that several nodes use; a random id follows, a new one with each migration. */
const CLUSTER = 'cluster:'
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

/** Migrations of a node that joins. */
export interface JoinWork {
  /** How many migrations are missing. */
  readonly pending: () => Promise<number>
  readonly migrate: () => Promise<void>
  /** Runs them while other nodes are connected, if those work with the new schema. */
  readonly migrateBeside: () => Promise<void>
}

/**
 * Keeps two nodes from using one store, by an advisory lock and the row of `node_holder`.
 *
 * A starting node takes the lock exclusively, writes itself into the row, and keeps the lock shared. Every other
 * connection takes the lock shared too when it is made, and then reads the row. So the row cannot change while any
 * connection that can write is open on the server: a second node must wait until all of them have ended. A node whose
 * connections ended on the server without its knowledge finds another holder as soon as it connects again, and ends.
 *
 * A node polls the lock and never waits for it: PostgreSQL would queue shared requests behind a waiting exclusive one, so a
 * second node that is started by mistake would stop the first one from connecting.
 *
 * When several nodes may use a store, the row names their cluster. The first node takes the lock as a node alone does; the
 * next ones find it shared, and the row says that they may share it. Rows with epochs (`cluster/`) decide what only one of
 * them may do. A node that finds no other one migrates and then draws a new name, so that an older node that was cut off
 * meanwhile finds another holder, and ends. A node that finds others migrates only if they work with the new schema, and
 * keeps the name.
 */
export class NodeLock {
  #holder: string = randomUUID()
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
    await this.#keep(client)
  }

  /** Writes the holder into the row, and keeps the lock shared. */
  async #keep(client: pg.ClientBase): Promise<void> {
    await client.query(HOLD, [this.#holder, `${hostname()}, process ${process.pid}`, systemClock.now()])
    await client.query(SHARE, [NODE_LOCK])
    await client.query(LET_GO, [NODE_LOCK])
  }

  /**
   * Takes the store together with the other nodes of its cluster; afterwards the connection holds the lock shared.
   * @throws HomeportError `store_in_use` when a node alone has the store, `nodes_too_old` when migrations are missing that
   * running nodes do not work with.
   */
  async join(client: pg.ClientBase, work: JoinWork): Promise<void> {
    for (let waitedMs = 0; ; waitedMs += LOCK_LOOK_MS) {
      if (await tryLock(client, TAKE)) return await this.#found(client, work)
      if (await tryLock(client, SHARE)) {
        const holder = await holderIn(client)
        if (holder?.holder.startsWith(CLUSTER)) return await this.#joined(holder, work)
        // The holder may be a node alone that is ending, or one that was killed.
        await client.query(UNSHARE, [NODE_LOCK])
        if (waitedMs >= LOCK_WAIT_MS) throw await inUse(client)
      }
      if (waitedMs >= JOIN_WAIT_MS) throw await inUse(client)
      await pause(systemClock, LOCK_LOOK_MS)
    }
  }

  async #found(client: pg.ClientBase, { pending, migrate }: JoinWork): Promise<void> {
    const isChanged = (await pending()) > 0
    await migrate()
    const holder = await holderIn(client)
    this.#holder = !isChanged && holder?.holder.startsWith(CLUSTER) ? holder.holder : CLUSTER + randomUUID()
    await this.#keep(client)
  }

  async #joined({ holder }: Holder, { pending, migrateBeside }: JoinWork): Promise<void> {
    if ((await pending()) > 0) await migrateBeside()
    this.#holder = holder
  }

  /**
   * Guards a new connection. It must not be used if this rejects.
   * @throws HomeportError `store_in_use` when another node has taken the store; then this one has to end.
   */
  async guard(client: pg.ClientBase): Promise<void> {
    if (this.#taken) throw this.#taken
    if (!(await lock(client, SHARE))) {
      // The other server may still fail to start. When it has started, it is in the row.
      throw Object.assign(new Error('another Homeport server is starting on this store'), { code: LOCK_NOT_AVAILABLE })
    }
    // A separate statement after the lock: it sees everything that was committed before the lock was free.
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

async function tryLock(client: pg.ClientBase, statement: string): Promise<boolean> {
  const { rows } = await client.query<{ got: number }>(statement, [NODE_LOCK])
  return rows[0]?.got === 1
}

async function holderIn(client: pg.ClientBase): Promise<Holder | undefined> {
  const { rows: found } = await client.query<{ there: number }>(HAS_HOLDER)
  return found[0]?.there === 1 ? (await client.query<Holder>(HOLDER)).rows[0] : undefined
}

async function lock(client: pg.ClientBase, statement: string): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += LOCK_LOOK_MS) {
    if (await tryLock(client, statement)) return true
    if (waitedMs >= LOCK_WAIT_MS) return false
    await pause(systemClock, LOCK_LOOK_MS)
  }
}

/** The error that names the node that has the store, as far as the store knows it. */
async function inUse(client: pg.ClientBase): Promise<HomeportError> {
  const { rows: addresses } = await client.query<{ address: string }>(LOCKING)
  const from = addresses.map(({ address }) => `connected from ${address}`)
  const holder = await holderIn(client)
  const names = holder && holder.name !== '' ? [nameOf(holder)] : []
  return new HomeportError('store_in_use', { holder: [...names, ...from].join(', ') || 'an older version' })
}

const nameOf = ({ holder, name, since }: Holder): string =>
  `${holder.startsWith(CLUSTER) ? 'nodes of a cluster, the first on ' : ''}host ${name}, since ${new Date(since).toISOString()}`
