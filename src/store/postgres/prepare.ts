import type pg from 'pg'
import { postgresDialect } from '../dialect.js'
import { type AppliedMigration, ledgerStatement, pendingMigrations } from '../migrations/index.js'
import type { Migration } from '../migrations/migration.js'

const RECORD = 'INSERT INTO schema_migrations (number, name, breaking, applied_at) VALUES ($1, $2, $3, $4)'

/** Brings the schema up to date, each step in a transaction of its own. The caller holds the node lock. */
export async function migrate(client: pg.Client): Promise<void> {
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
export async function durabilityOf(client: pg.Client): Promise<string> {
  const settings: string[] = []
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const answer = await client.query<{ value: string }>('SELECT current_setting($1) AS value', [name])
    settings.push(`${name}=${answer.rows[0]?.value}`)
  }
  return `PostgreSQL's own: ${settings.join(', ')} (each must not be off)`
}
