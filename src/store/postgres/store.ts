import pg from 'pg'
import { HomeportError } from '../../contract/errors.js'
import { postgresDialect } from '../dialect.js'
import '../operations/index.js'
import type { AnyOperation, Operation, Statement, Transaction } from '../operation.js'
import { bind } from '../query.js'
import type { Tables } from '../schema/index.js'
import type { Store, StoreDescription } from '../types.js'
import { migrate, takeNodeLock } from './prepare.js'

const POOL_SIZE = 10
/** PostgreSQL's protocol counts parameters with 16 bits. */
const MOST_PARAMETERS = 65_535
const MOST_TRIES = 10
/** Serialization failure and deadlock: the transaction did nothing and may simply run again. */
const TRY_AGAIN = new Set(['40001', '40P01'])
const FULL_DISK = '53100'

/**
 * Opens the store in a PostgreSQL database, bringing its schema up to date.
 * @param url `postgres://user:password@host:port/database`; never logged.
 * @param onFailure called when the store can no longer work.
 */
export async function openPostgresStore(url: string, onFailure: (error: Error) => void): Promise<Store> {
  // 20 is the type int8: all our integers fit in 53 bits.
  const types = { getTypeParser: (id: number, format?: 'text' | 'binary') => (id === 20 ? Number : pg.types.getTypeParser(id, format as 'text')) }
  const lock = new pg.Client({ connectionString: url })
  const pool = new pg.Pool({ connectionString: url, max: POOL_SIZE, types: types as pg.CustomTypesConfig })
  try {
    await takeNodeLock(lock)
    await migrate(lock)
  } catch (error) {
    await Promise.allSettled([lock.end(), pool.end()])
    throw error
  }
  lock.on('error', onFailure)
  pool.on('error', () => undefined) // an idle connection that drops is replaced by the pool
  return new PostgresStore(pool, lock)
}

/** Each operation is a transaction of its own on a pooled connection; PostgreSQL itself groups the commits. */
class PostgresStore implements Store {
  readonly #pool: pg.Pool
  readonly #lock: pg.Client

  constructor(pool: pg.Pool, lock: pg.Client) {
    this.#pool = pool
    this.#lock = lock
  }

  async run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        // The body is the very operation that carries this type.
        return (await this.#once(operation as AnyOperation, args)) as Result
      } catch (error) {
        if (attempt >= MOST_TRIES || !TRY_AGAIN.has(codeOf(error))) throw translate(error)
      }
    }
  }

  async #once(operation: AnyOperation, args: unknown): Promise<unknown> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      await client.query(operation.access === 'write' ? 'BEGIN' : 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      const result = await drive(client, operation.body(args as never))
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK').catch((failure: Error) => (broken = failure))
      throw error
    } finally {
      client.release(broken)
    }
  }

  describe(): StoreDescription {
    return { kind: 'postgres', durability: "PostgreSQL's own: keep synchronous_commit on" }
  }

  async close(): Promise<void> {
    await this.#pool.end()
    await this.#lock.end()
  }
}

async function drive(client: pg.ClientBase, transaction: Transaction<unknown>): Promise<unknown> {
  let step = transaction.next()
  while (!step.done) step = transaction.next(await execute(client, step.value))
  return step.value
}

async function execute(client: pg.ClientBase, statement: Statement): Promise<unknown> {
  if (statement.kind === 'insert') return insert(client, statement.table, statement.rows)
  const compiled = statement.query.compile(postgresDialect)
  const answer = await client.query(compiled.sql, bind(compiled, statement.params))
  return statement.kind === 'all' ? answer.rows : (answer.rowCount ?? 0)
}

/** Many rows go in one statement: each would cost a round trip otherwise. */
async function insert(client: pg.ClientBase, table: keyof Tables, rows: readonly object[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  const perStatement = Math.floor(MOST_PARAMETERS / columns.length)
  for (let start = 0; start < rows.length; start += perStatement) {
    const some = rows.slice(start, start + perStatement)
    const tuples = some.map((_, row) => `(${columns.map((_, column) => `$${row * columns.length + column + 1}`).join(', ')})`)
    const values = some.flatMap((row) => Object.values(row).map((value: unknown) => value ?? null))
    await client.query(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${tuples.join(', ')}`, values)
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function translate(error: unknown): unknown {
  if (error instanceof HomeportError) return error
  const code = codeOf(error)
  if (code === FULL_DISK) return new HomeportError('store_full', {}, { cause: error })
  // 08: connection exceptions; 57P: the server is going down; the rest are errors of sockets.
  const gone = code.startsWith('08') || code.startsWith('57P') || /^E[A-Z]+$/.test(code)
  return gone ? new HomeportError('store_unavailable', {}, { cause: error }) : error
}
