import type pg from 'pg'
import { TurnoverMap } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { StoreMeter } from '../../telemetry/index.js'
import { postgresDialect } from '../dialect.js'
import { type AppliedMigration, ledgerStatement, pendingMigrations } from '../migrations/index.js'
import type { Migration } from '../migrations/migration.js'
import type { AnyOperation, Operation } from '../operation.js'
import type { Store, StoreDescription, StoreWatch } from '../types.js'
import { connectionSettings, placeOf, reasonOf, toStoreError } from './connection.js'
import { Connections } from './connections.js'
import { NodeLock } from './node-lock.js'
import { Retries } from './retries.js'
import { runTransaction } from './transaction.js'

/**
 * Opens the store in a PostgreSQL database and migrates its schema.
 * @param url `postgres://user:password@host:port/database`; never logged, never part of an error.
 * @param watch `onFailure` is called when another node has taken the database.
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
  return new PostgresStore(new Connections(settings, lock), { ...watch, durability })
}

const RECORD = 'INSERT INTO schema_migrations (number, name, breaking, applied_at) VALUES ($1, $2, $3, $4)'

/** Migrates the schema, each migration in its own transaction. The caller holds the node lock. */
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

/** Durability of a commit of this server, in words for the operator. */
async function durabilityOf(client: pg.Client): Promise<string> {
  const settings: string[] = []
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const answer = await client.query<{ value: string }>('SELECT current_setting($1) AS value', [name])
    settings.push(`${name}=${answer.rows[0]?.value}`)
  }
  return `PostgreSQL's own: ${settings.join(', ')} (none may be off)`
}

/** Runs each operation as a transaction on a pooled connection; PostgreSQL itself groups commits. */
class PostgresStore implements Store {
  readonly #connections: Connections
  readonly #retries = new Retries()
  readonly #durability: string
  readonly #onDamage: StoreWatch['onDamage']
  readonly #meter: StoreMeter
  readonly #running = new TurnoverMap<Promise<unknown>, true>()
  #closing: Promise<void> | undefined

  constructor(connections: Connections, more: Pick<StoreWatch, 'onDamage' | 'meter'> & { durability: string }) {
    this.#connections = connections
    this.#durability = more.durability
    this.#onDamage = more.onDamage
    this.#meter = more.meter ?? new StoreMeter()
  }

  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    if (this.#closing) return Promise.reject(new HomeportError('starting', {}))
    // Safe: the result comes from this operation.
    const result = this.#metered(operation as AnyOperation, args) as Promise<Result>
    this.#running.set(result, true)
    const done = (): void => void this.#running.delete(result)
    result.then(done, done)
    return result
  }

  async #metered(operation: AnyOperation, args: unknown): Promise<unknown> {
    const meter = this.#meter[operation.access]
    const startedMs = performance.now()
    meter.pending++
    try {
      return await this.#run(operation, args)
    } catch (error) {
      meter.failed++
      throw error
    } finally {
      meter.ended(startedMs, performance.now())
    }
  }

  async #run(operation: AnyOperation, args: unknown): Promise<unknown> {
    try {
      return await this.#retries.run(operation.name, () => this.#runOnce(operation, args))
    } catch (error) {
      throw this.#failure(error, operation)
    }
  }

  #failure(error: unknown, { name }: AnyOperation): Error {
    const failure = toStoreError(error, name)
    if (isError(failure, 'store_damaged')) this.#onDamage(failure.details)
    return failure
  }

  #runOnce(operation: AnyOperation, args: unknown): Promise<unknown> {
    return this.#connections.use((client) => runTransaction(client, operation, args, this.#onDamage))
  }

  describe(): StoreDescription {
    return { kind: 'postgres', durability: this.#durability }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Waits for all operations first, because those that wait for a connection are dropped when the connections close. */
  async #close(): Promise<void> {
    await Promise.allSettled(this.#running.keys())
    await this.#connections.close()
  }
}
