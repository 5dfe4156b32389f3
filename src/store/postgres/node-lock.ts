import pg from 'pg'
import { codeOf } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'

/** Key of the advisory lock that a node holds while it uses a store; an arbitrary constant. */
const NODE_LOCK = 7_210_001
/** The server may need a moment to notice that the previous node was killed. */
const LOCK_WAIT_MS = 2_000
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * `held`: the connection that owns the lock is open. `lost`: it broke, and no transaction may run until the lock is taken
 * again. `released`: the store is closed.
 */
type State =
  | { readonly kind: 'held'; readonly client: pg.Client }
  | { readonly kind: 'lost'; readonly retaking?: Promise<void> }
  | { readonly kind: 'released' }

/**
 * Keeps two nodes from using one store, by an advisory lock of PostgreSQL. The lock belongs to a connection: when the node
 * dies, the server releases it; when the server restarts, the node takes it again before it continues.
 */
export class NodeLock {
  readonly #settings: pg.ClientConfig
  readonly #onTaken: (error: Error) => void
  #state: State = { kind: 'lost' }

  /** @param onTaken called when another node took the lock while this node was disconnected. */
  constructor(settings: pg.ClientConfig, onTaken: (error: Error) => void) {
    this.#settings = settings
    this.#onTaken = onTaken
  }

  /**
   * Takes the lock for the first time, then runs `prepare` on its connection.
   * @throws HomeportError `store_in_use` when another node holds it.
   */
  async take(prepare: (client: pg.Client) => Promise<void>): Promise<void> {
    const client = await this.#connect()
    try {
      await prepare(client)
    } catch (error) {
      await client.end().catch(() => undefined)
      throw error
    }
    this.#setHeld(client)
  }

  /** Resolves when this node holds the lock; takes it again if the connection broke. */
  async ensureHeld(): Promise<void> {
    switch (this.#state.kind) {
      case 'held':
        return
      case 'released':
        throw new HomeportError('starting', {})
      case 'lost':
        return await this.#retake(this.#state)
    }
  }

  /** Releases the lock. */
  async release(): Promise<void> {
    const state = this.#state
    this.#state = { kind: 'released' }
    if (state.kind === 'held') await state.client.end().catch(() => undefined)
    if (state.kind === 'lost') await state.retaking?.catch(() => undefined)
  }

  /** Concurrent callers share one attempt. */
  #retake(state: Extract<State, { kind: 'lost' }>): Promise<void> {
    if (state.retaking) return state.retaking
    const retaking = this.#connect().then(
      (client) => this.#setHeld(client),
      (error: Error) => this.#stayLost(error),
    )
    this.#state = { kind: 'lost', retaking }
    return retaking
  }

  #stayLost(error: Error): never {
    if (this.#state.kind === 'lost') this.#state = { kind: 'lost' }
    if (isError(error, 'store_in_use')) this.#onTaken(error)
    throw error
  }

  #setHeld(client: pg.Client): void {
    if (this.#state.kind === 'released') return void client.end().catch(() => undefined)
    this.#state = { kind: 'held', client }
    client.once('end', () => this.#setLost(client))
  }

  #setLost(client: pg.Client): void {
    if (this.#state.kind === 'held' && this.#state.client === client) this.#state = { kind: 'lost' }
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(this.#settings)
    client.on('error', () => undefined) // 'end' follows and is handled
    await client.connect()
    try {
      await client.query(`SET lock_timeout = ${LOCK_WAIT_MS}`)
      await client.query('SELECT pg_advisory_lock($1)', [NODE_LOCK])
      await client.query('RESET lock_timeout')
      return client
    } catch (error) {
      await client.end().catch(() => undefined)
      throw codeOf(error) === LOCK_NOT_AVAILABLE ? new HomeportError('store_in_use', {}) : error
    }
  }
}
