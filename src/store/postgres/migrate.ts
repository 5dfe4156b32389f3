import type pg from 'pg'
import { codeOf, pause, systemClock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { postgresDialect } from '../dialect.js'
import { type AppliedMigration, isNewStore, ledgerStatement, pendingMigrations, recordOf } from '../migrations/index.js'
import { type Migration, SCHEMA_RANGE } from '../migrations/migration.js'
import { canRunBeside, FIRST_RANGE, type SchemaRange } from '../schema/cluster.js'

const HAS_TABLE = 'SELECT (to_regclass($1) IS NOT NULL)::int AS there'
const LEDGER = 'SELECT * FROM schema_migrations'

/** A migration that waits for a table lock blocks all later statements on the table, so it waits briefly and retries. */
const LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
/** Codes for a lock timeout and a deadlock. */
const TRY_AGAIN = new Set(['55P03', '40P01'])
const PAUSE_MS = 250
/** Time limit for nodes that are too old: the row of a killed node looks alive until another node declares it dead. */
const GIVE_UP_AFTER_MS = 10_000
/** Time limit for locks: PostgreSQL ends transactions of other nodes that exceed their limits. */
const GIVE_UP_LOCKS_AFTER_MS = 60_000

const hasTable = async (client: pg.ClientBase, table: string): Promise<boolean> =>
  (await client.query<{ there: number }>(HAS_TABLE, [table])).rows[0]?.there === 1

/**
 * The applied migrations; undefined in a database that no server has used.
 * @throws Error in a database of another program that keeps its migrations in a table of the same name, as several do.
 */
export async function ledgerIn(client: pg.ClientBase): Promise<readonly AppliedMigration[] | undefined> {
  if (!(await hasTable(client, 'schema_migrations'))) return undefined
  const { rows, fields } = await client.query<AppliedMigration>(LEDGER)
  if (fields.some(({ name }) => name === 'breaking')) return rows
  throw new Error('the database has a table schema_migrations of another program; use one of its own for Homeport')
}

const pendingIn = async (client: pg.Client): Promise<readonly Migration[]> =>
  pendingMigrations((await ledgerIn(client)) ?? [])

/** How many migrations are missing. Changes nothing. */
export async function countPending(client: pg.Client): Promise<number> {
  return (await pendingIn(client)).length
}

/**
 * Migrates the schema: all of a new store in one transaction, else each migration in its own. The caller holds the node
 * lock.
 */
export async function migrate(client: pg.Client): Promise<void> {
  const pending = await pendingIn(client)
  if (isNewStore(pending)) return makeSchema(client, pending)
  for (const migration of pending) await inTransaction(client, () => apply(client, migration))
}

async function makeSchema(client: pg.Client, migrations: readonly Migration[]): Promise<void> {
  await refuseOtherEncoding(client)
  await inTransaction(client, async () => {
    await client.query(ledgerStatement(postgresDialect.types))
    for (const migration of migrations) await apply(client, migration)
  })
}

/** Refuses a database with another encoding than UTF-8: it could not store every text. */
async function refuseOtherEncoding(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_encoding: string }>('SHOW server_encoding')
  const encoding = rows[0]?.server_encoding
  if (encoding === 'UTF8') return
  throw new Error(
    `the database has the encoding ${encoding}; create one with UTF8 (createdb --encoding UTF8 --template template0)`,
  )
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query(recordOf(migration, systemClock.now()))
  for (const statement of migration.statements(postgresDialect.types)) await client.query(statement)
}

async function inTransaction<Result>(client: pg.Client, work: () => Promise<Result>): Promise<Result> {
  await client.query('BEGIN')
  try {
    const result = await work()
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/**
 * Migrates the schema while other nodes use the store. Gives up when a node beats that does not work with the new schema. A
 * node that does not beat may have been killed: waits up to 10 s until another node declares it dead.
 * @throws HomeportError `nodes_too_old`, `node_versions_apart`.
 */
export async function migrateBeside(client: pg.Client): Promise<void> {
  const beats = new Map<number, number>()
  const startedMs = performance.now()
  for (;;) {
    const refusal = await step(client).catch((error: unknown) => {
      const isLate = performance.now() - startedMs > GIVE_UP_LOCKS_AFTER_MS
      if (!TRY_AGAIN.has(codeOf(error)) || isLate) throw error
      return 'again' as const
    })
    if (refusal === 'done') return
    if (refusal === 'again') await pause(systemClock, PAUSE_MS)
    if (typeof refusal === 'string') continue
    const hasBeaten = refusal.nodes.some((node) => (beats.get(node.incarnation) ?? node.beat) !== node.beat)
    if (hasBeaten || performance.now() - startedMs > GIVE_UP_AFTER_MS) throw refusal.error
    for (const { incarnation, beat } of refusal.nodes) beats.set(incarnation, beat)
    await pause(systemClock, PAUSE_MS)
  }
}

interface LiveNode extends SchemaRange {
  readonly incarnation: number
  readonly name: string
  readonly version: string
  readonly beat: number
}

/** Nodes because of which a migration cannot be applied. */
interface Refusal {
  readonly nodes: readonly LiveNode[]
  readonly error: HomeportError
}

/** Applies the next migration. No node can register at the same time: a registration locks the same row. */
function step(client: pg.Client): Promise<'done' | 'applied' | Refusal> {
  return inTransaction(client, async () => {
    await client.query(LOCK_TIMEOUT)
    await client.query("SELECT 1 FROM leases WHERE name = 'announcements' FOR UPDATE")
    const [next] = await pendingIn(client)
    if (!next) return 'done'
    const refusal = refusalOf(next, await liveNodes(client))
    if (refusal) return refusal
    await apply(client, next)
    return 'applied'
  })
}

async function liveNodes(client: pg.Client): Promise<readonly LiveNode[]> {
  const ranges = (await hasTable(client, 'node_generations'))
    ? 'LEFT JOIN node_generations USING (incarnation)'
    : 'CROSS JOIN (SELECT NULL::bigint AS generation, NULL::bigint AS schema_from, NULL::bigint AS schema_to) unknown'
  const { rows } = await client.query(`SELECT incarnation, name, version, beat, generation, schema_from, schema_to
    FROM nodes ${ranges} WHERE state IN ('live', 'draining') ORDER BY name`)
  return rows.map((row) => (row.generation === null ? { ...row, ...FIRST_RANGE } : row))
}

const names = (nodes: readonly LiveNode[]): string[] =>
  nodes.map(({ name, version }) => `"${name}" (version ${version})`)

/** Which live nodes do not work with a schema that has this migration. */
export function refusalOf(migration: Migration, live: readonly LiveNode[]): Refusal | undefined {
  const apart = live.filter((node) => !canRunBeside(SCHEMA_RANGE, node))
  if (apart.length > 0) {
    const details = {
      nodes: names(apart),
      isOlder: apart.some(({ generation }) => generation > SCHEMA_RANGE.generation),
    }
    return { nodes: apart, error: new HomeportError('node_versions_apart', details) }
  }
  const { breaking, worksFrom = SCHEMA_RANGE.generation, number, name } = migration
  const old = live.filter(({ generation }) => breaking && generation < worksFrom)
  if (old.length === 0) return undefined
  const details = { nodes: names(old), step: `step ${number}, ${name}` }
  return { nodes: old, error: new HomeportError('nodes_too_old', details) }
}
