import type pg from 'pg'
import { postgresDialect } from '../dialect.js'
import { type AppliedMigration, ledgerStatement, pendingMigrations } from '../migrations/index.js'

/** Any fixed number: the advisory lock that a node holds for as long as it works on a store. */
const NODE_LOCK = 7_210_001

/**
 * Takes the store for this node. The lock belongs to the connection, so it goes when the node dies.
 * @throws when another node works on the store.
 */
export async function takeNodeLock(client: pg.Client): Promise<void> {
  await client.connect()
  const answer = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [NODE_LOCK])
  if (answer.rows[0]?.taken) return
  throw new Error('Another Homeport already works on this PostgreSQL database. Stop it first, or give this one a database of its own.')
}

/** Brings the schema up to date, each step in a transaction of its own. */
export async function migrate(client: pg.Client): Promise<void> {
  await client.query(ledgerStatement(postgresDialect.types))
  const applied = await client.query<AppliedMigration>('SELECT number::int, name, breaking::int FROM schema_migrations')
  for (const migration of pendingMigrations(applied.rows)) {
    const steps = migration.statements(postgresDialect.types)
    const record = 'INSERT INTO schema_migrations (number, name, breaking, applied_at) VALUES ($1, $2, $3, $4)'
    await client.query('BEGIN')
    try {
      await client.query(record, [migration.number, migration.name, migration.breaking ? 1 : 0, Date.now()])
      for (const step of steps) await client.query(step)
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    }
  }
}
