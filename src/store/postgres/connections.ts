import pg from 'pg'
import { isError } from '../../contract/errors/errors.js'
import { isLoss } from './connection.js'
import type { NodeLock } from './node-lock.js'

const POOL_SIZE = 10

/** The connections on which a store runs its transactions. Each is guarded by the lock of the node. */
export class Connections {
  readonly #pool: pg.Pool
  readonly #lock: NodeLock

  constructor(settings: pg.ClientConfig, lock: NodeLock) {
    this.#pool = new pg.Pool({ ...settings, max: POOL_SIZE })
    this.#lock = lock
    // A lost connection fails its statements. Without a listener, the same error would end the process.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
  }

  /** Runs `work` on a connection that nobody else uses. A connection that broke is closed, any other is used again. */
  async use<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    await this.#lock.ensureHeld()
    const client = await this.#pool.connect()
    let isBroken = false
    try {
      return await work(client)
    } catch (error) {
      isBroken = isLoss(error) || isError(error, 'store_outcome_unknown')
      throw error
    } finally {
      client.release(isBroken)
    }
  }

  /** Closes all connections. Those in use are closed when their work has ended, so wait for it first. */
  async close(): Promise<void> {
    await this.#pool.end()
    await this.#lock.release()
  }
}
