import pg from 'pg'
import { codeOf, pause, systemClock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type ColumnTypes, postgresDialect } from '../dialect.js'
import { targetOf } from '../postgres/connection.js'
import { READ_ONLY, reasonOf } from '../postgres/errors.js'
import { NODE_LOCK } from '../postgres/node-lock.js'
import { columnList, type Table, tablesToCopy } from './catalog.js'
import { PostgresReader } from './postgres-reader.js'
import { copyIn } from './postgres-wire.js'
import { type Batch, partOf, rowOf, valuesIn } from './rows.js'
import type { CopyTarget, Notes, Refused } from './types.js'

/** Data exceptions, violated constraints, and limits such as the size of an index entry: PostgreSQL refuses only the row. */
const REFUSED = /^(?:22|23|54)/

/** Turns off limits that would end a long statement. Skips settings that the server does not know. */
const UNLIMITED = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN
  ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`

/** PostgreSQL may need a moment to notice that a server or an earlier copy was killed. */
const LOCK_TRIES = 20
const LOCK_PAUSE_MS = 100

const KEEP_ALIVE_MS = 10_000
const CONNECT_TIMEOUT_MS = 30_000

/**
 * Connects for a copy to the first host that accepts writes, and locks the store. Lock and copy share one connection, so a
 * server that gets the lock after a loss knows that the copy has ended.
 * @param place of the store, for people.
 * @throws HomeportError `store_copy_refused` while a server uses the store, `store_not_opened`.
 */
export async function connectForCopy(url: string, place: string): Promise<pg.Client> {
  let failure: unknown
  for (const host of targetOf(url).urls) {
    try {
      return await connectToHost(host, place)
    } catch (error) {
      if (error instanceof HomeportError) throw error
      failure = error
    }
  }
  throw new HomeportError('store_not_opened', { where: place, reason: reasonOf(failure) })
}

async function connectToHost(url: string, place: string): Promise<pg.Client> {
  // Not `connectionSettings`: COPY does not work on a pipelined connection, and one statement may take long.
  const client = new pg.Client({
    connectionString: url,
    application_name: 'homeport store copy',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  })
  client.on('error', () => undefined) // the running statement gets the error
  try {
    await client.connect()
    await refuseStandby(client)
    await client.query(UNLIMITED)
    await client.query("SET client_encoding = 'UTF8'")
    // Reads tables in the order of their keys through the index: a sort would need as much disk space again.
    await client.query('SET enable_sort = off')
    await lock(client, place)
    return client
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

/** Refuses a standby: it does not accept writes, and does not show the locks of the servers that use the primary. */
async function refuseStandby(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby')
  if (rows[0]?.standby) throw Object.assign(new Error('the server is a standby'), { code: READ_ONLY })
}

async function lock(client: pg.Client, place: string): Promise<void> {
  for (let tries = 0; tries < LOCK_TRIES; tries++) {
    const { rows } = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [NODE_LOCK])
    if (rows[0]?.got) return
    await pause(systemClock, LOCK_PAUSE_MS)
  }
  throw new HomeportError('store_copy_refused', {
    problem: `A Homeport server, or another copy, uses ${place}. Stop it first.`,
  })
}

/** Writes a store into a PostgreSQL database. */
export class PostgresTarget implements CopyTarget {
  readonly types: ColumnTypes = postgresDialect.types
  readonly reader: PostgresReader
  readonly #client: pg.Client

  constructor(client: pg.Client) {
    this.#client = client
    this.reader = new PostgresReader(client)
  }

  /** The encoding of the database. */
  async encoding(): Promise<string> {
    const { rows } = await this.#client.query<{ server_encoding: string }>('SHOW server_encoding')
    return rows[0]?.server_encoding ?? ''
  }

  async tableNames(): Promise<readonly string[]> {
    const names = [...tablesToCopy().map(({ name }) => name), 'schema_migrations', 'store_copy']
    const text = 'SELECT name FROM unnest($1::text[]) AS t (name) WHERE to_regclass(name) IS NOT NULL'
    return (await this.#client.query<{ name: string }>(text, [names])).rows.map(({ name }) => name)
  }

  async notes(): Promise<ReadonlyMap<string, string>> {
    const { rows } = await this.#client.query<{ subject: string; state: string }>(
      'SELECT subject, state FROM store_copy',
    )
    return new Map(rows.map(({ subject, state }) => [subject, state]))
  }

  async change(statements: readonly string[], notes: Notes = []): Promise<void> {
    await this.#transaction('on', async () => {
      for (const statement of statements) await this.#client.query(statement)
      await this.#note(notes)
    })
  }

  /**
   * @param wait value of `synchronous_commit`. `off`: a crash of the server may lose the last commits, but never one in
   * the middle; a later commit with `on` makes all of them durable.
   */
  async #transaction(wait: 'on' | 'off', work: () => Promise<void>): Promise<void> {
    await this.#client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    try {
      await this.#client.query(`SET LOCAL synchronous_commit = ${wait}`)
      await work()
      await this.#client.query('COMMIT')
    } catch (error) {
      await this.#client.query('ROLLBACK').catch(() => undefined)
      throw error
    }
  }

  async #note(notes: Notes): Promise<void> {
    const put =
      'INSERT INTO store_copy (subject, state) VALUES ($1, $2) ON CONFLICT (subject) DO UPDATE SET state = excluded.state'
    for (const note of notes) await this.#client.query(put, [...note])
  }

  async write(table: Table, batch: Batch, notesOf: (refused: readonly Refused[]) => Promise<Notes>): Promise<void> {
    await this.#transaction('off', async () => {
      const refused: Refused[] = []
      if (batch.starts.length > 0) await this.#copy(table, batch, refused)
      await this.#note(await notesOf(refused))
    })
  }

  /** Sends rows. If PostgreSQL refuses one, sends each half separately. */
  async #copy(table: Table, batch: Batch, refused: Refused[]): Promise<void> {
    await this.#client.query('SAVEPOINT rows')
    try {
      await copyIn(this.#client, `COPY ${table.name} (${columnList(table)}) FROM STDIN (FORMAT binary)`, batch.bytes)
      await this.#client.query('RELEASE rows')
    } catch (error) {
      if (!REFUSED.test(codeOf(error))) throw error
      await this.#client.query('ROLLBACK TO rows; RELEASE rows')
      const rows = batch.starts.length
      if (rows === 1) return void refused.push(refusal(table, rowOf(batch, 0), error))
      const half = Math.ceil(rows / 2)
      await this.#copy(table, partOf(batch, 0, half), refused)
      await this.#copy(table, partOf(batch, half, rows), refused)
    }
  }

  emptyStatements(tables: readonly Table[]): readonly string[] {
    return [`TRUNCATE ${tables.map(({ name }) => name).join(', ')} RESTART IDENTITY`]
  }

  async setNumber({ name, numbered }: Table, last: number): Promise<void> {
    if (last > 0) await this.#client.query('SELECT setval(pg_get_serial_sequence($1, $2), $3)', [name, numbered, last])
  }

  async settle(): Promise<void> {
    for (const { name } of tablesToCopy()) await this.#client.query(`ANALYZE ${name}`)
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined)
  }
}

function refusal(table: Table, row: Buffer, error: unknown): Refused {
  const values = valuesIn(table, row)
  const named = Object.fromEntries(table.columns.map(({ name }, index) => [name, values[index] ?? null]))
  return { reason: reasonOf(error), values: named, row }
}
