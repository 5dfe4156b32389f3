import type pg from 'pg'
import { HomeportError } from '../../contract/errors/errors.js'
import { INCARNATION_LOCKS } from '../incarnation.js'

const SHARE = `SELECT pg_advisory_lock_shared(${INCARNATION_LOCKS}, $1::int)`
const TAKES_PART = "SELECT incarnation FROM nodes WHERE incarnation = $1 AND state IN ('live', 'draining')"

/**
 * Marks the connections of one incarnation of a node by an advisory lock, so that the node that declares the incarnation
 * dead can end all of them (`endConnectionsOf`). A connection that is made later finds that the incarnation is dead, and is
 * not used.
 */
export class IncarnationLock {
  readonly #marked = new WeakSet<pg.ClientBase>()
  #incarnation: number | undefined

  /** From now on connections are used for this incarnation only. */
  begin(incarnation: number): void {
    this.#incarnation = incarnation
  }

  /** Whether a connection may be used as it is. */
  isMarked(client: pg.ClientBase): boolean {
    return this.#incarnation === undefined || this.#marked.has(client)
  }

  /**
   * Marks a connection.
   * @throws HomeportError `store_unavailable` when the incarnation is over.
   */
  async mark(client: pg.ClientBase): Promise<void> {
    await client.query(SHARE, [this.#incarnation])
    // A separate statement after the lock: it sees whether the incarnation was declared dead before.
    const { rows } = await client.query(TAKES_PART, [this.#incarnation])
    if (rows.length === 0) throw new HomeportError('store_unavailable', {})
    this.#marked.add(client)
  }
}
