import type pg from 'pg'
import { HomeportError } from '../../contract/errors/errors.js'
import { LIFE_LOCKS } from '../life.js'

const SHARE = `SELECT pg_advisory_lock_shared(${LIFE_LOCKS}, $1::int)`
const TAKES_PART = "SELECT incarnation FROM nodes WHERE incarnation = $1 AND state IN ('live', 'draining')"

/**
 * Marks the connections of one life of a node by an advisory lock, so that the node that declares the life dead can end all
 * of them (`endConnectionsOf`). A connection that is made later finds that the life is dead, and is not used.
 */
export class LifeLock {
  readonly #marked = new WeakSet<pg.ClientBase>()
  #life: number | undefined

  /** From now on connections are used for this life only. */
  begin(life: number): void {
    this.#life = life
  }

  /** Whether a connection may be used as it is. */
  isMarked(client: pg.ClientBase): boolean {
    return this.#life === undefined || this.#marked.has(client)
  }

  /**
   * Marks a connection.
   * @throws HomeportError `store_unavailable` when the life is over.
   */
  async mark(client: pg.ClientBase): Promise<void> {
    await client.query(SHARE, [this.#life])
    // A separate statement after the lock: it sees whether the life was declared dead before.
    const { rows } = await client.query(TAKES_PART, [this.#life])
    if (rows.length === 0) throw new HomeportError('store_unavailable', {})
    this.#marked.add(client)
  }
}
