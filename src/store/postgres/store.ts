import pg from 'pg'
import { TurnoverMap } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { postgresDialect } from '../dialect.js'
import { type AppliedMigration, ledgerStatement, pendingMigrations } from '../migrations/index.js'
import type { Migration } from '../migrations/migration.js'
import type { AnyOperation, Operation } from '../operation.js'
import type { Store, StoreDescription, StoreWatch } from '../types.js'
import { connectionSettings, isLoss, mayRunAgain, placeOf, reasonOf, toStoreError } from './connection.js'
import { NodeLock } from './node-lock.js'
import { runTransaction } from './transaction.js'

const POOL_SIZE = 10
const MOST_TRIES = 10

/**
 * Opens the store in a PostgreSQL database, bringing its schema up to date.
 * @param url `postgres://user:password@host:port/database`; never logged, never part of an error.
 * @param watch its `onFailure` is called when another node has taken the database.
 * @throws HomeportError `store_in_use`, `store_newer` or `store_not_opened`.
 */
export async function openPostgresStore(url: string, watch: StoreWatch): Promise<Store> {
  const settings = connectionSettings(url)
  const lock = new NodeLock(settings, watch.onFailure)
  let durability = ''
  try {
    await lock.take(async (client) => {
      await migrate(client)
      durability = await durabilityOf(client)
    })
  } catch (error) {
    if (error instanceof HomeportError) throw error
    throw new HomeportError('store_not_opened', { where: placeOf(url), reason: reasonOf(error) })
  }
  return new PostgresStore(new pg.Pool({ ...settings, max: POOL_SIZE }), lock, { durability, onDamage: watch.onDamage })
}

const RECORD = 'INSERT INTO schema_migrations (number, name, breaking, applied_at) VALUES ($1, $2, $3, $4)'

/** Brings the schema up to date, each step in a transaction of its own. The caller holds the node lock. */
async function migrate(client: pg.Client): Promise<void> {
  await client.query(ledgerStatement(postgresDialect.types))
  const applied = await client.query<AppliedMigration>('SELECT number, name, breaking FROM schema_migrations')
  for (const migration of pendingMigrations(applied.rows)) await apply(client, migration)
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('BEGIN')
  try {
    await client.query(RECORD, [migration.number, migration.name, migration.breaking ? 1 : 0, Date.now()])
    for (const statement of migration.statements(postgresDialect.types)) await client.query(statement)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/** What a commit of this server promises, in words for the operator. */
async function durabilityOf(client: pg.Client): Promise<string> {
  const settings: string[] = []
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const answer = await client.query<{ value: string }>('SELECT current_setting($1) AS value', [name])
    settings.push(`${name}=${answer.rows[0]?.value}`)
  }
  return `PostgreSQL's own: ${settings.join(', ')} (each must not be off)`
}

/** Each operation is a transaction of its own on a pooled connection; PostgreSQL itself groups the commits. */
class PostgresStore implements Store {
  readonly #pool: pg.Pool
  readonly #lock: NodeLock
  readonly #durability: string
  readonly #onDamage: StoreWatch['onDamage']
  readonly #running = new TurnoverMap<Promise<unknown>, true>()
  #lastTurn: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined

  constructor(pool: pg.Pool, lock: NodeLock, more: { durability: string; onDamage: StoreWatch['onDamage'] }) {
    this.#pool = pool
    this.#lock = lock
    this.#durability = more.durability
    this.#onDamage = more.onDamage
    // A connection that breaks fails its statements; without a listener the same error would end the process.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => client.on('error', () => undefined))
  }

  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    if (this.#closing) return Promise.reject(new HomeportError('starting', {}))
    // The body is the very operation that carries this type.
    const result = this.#run(operation as AnyOperation, args) as Promise<Result>
    this.#running.set(result, true)
    const done = (): void => void this.#running.delete(result)
    result.then(done, done)
    return result
  }

  async #run(operation: AnyOperation, args: unknown): Promise<unknown> {
    try {
      return await this.#runOnce(operation, args)
    } catch (error) {
      if (!mayRunAgain(error)) throw this.#failure(error, operation)
      return await this.#inTurn(() => this.#runAgain(operation, args))
    }
  }

  /**
   * Operations that were in each other's way would be so again if they ran again together, and each deadlock takes
   * PostgreSQL a second to find: second tries run one after the other.
   */
  #inTurn(work: () => Promise<unknown>): Promise<unknown> {
    const turn = this.#lastTurn.then(work)
    this.#lastTurn = turn.catch(() => undefined)
    return turn
  }

  async #runAgain(operation: AnyOperation, args: unknown): Promise<unknown> {
    for (let attempt = 2; ; attempt++) {
      try {
        return await this.#runOnce(operation, args)
      } catch (error) {
        if (attempt >= MOST_TRIES || !mayRunAgain(error)) throw this.#failure(error, operation)
      }
    }
  }

  #failure(error: unknown, { name }: AnyOperation): Error {
    const failure = toStoreError(error, name)
    if (isError(failure, 'store_damaged')) this.#onDamage(failure.details)
    return failure
  }

  async #runOnce(operation: AnyOperation, args: unknown): Promise<unknown> {
    await this.#lock.ensureHeld()
    const client = await this.#pool.connect()
    let isBroken = false
    try {
      return await runTransaction(client, operation, args, this.#onDamage)
    } catch (error) {
      isBroken = isLoss(error) || isError(error, 'store_outcome_unknown')
      throw error
    } finally {
      client.release(isBroken)
    }
  }

  describe(): StoreDescription {
    return { kind: 'postgres', durability: this.#durability }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** The pool drops those who wait for a connection when it ends, so everything asked for is finished first. */
  async #close(): Promise<void> {
    await Promise.allSettled(this.#running.keys())
    await this.#pool.end()
    await this.#lock.release()
  }
}
