import { execFileSync } from 'node:child_process'
import pg from 'pg'
import { expect, it } from 'vitest'
import { openSqlite } from './base/index.js'
import { openStore, sqliteFileIn } from './store/open.js'
import { describeOnStore } from './store/testing/index.js'
import { migratedDataDir } from './store/testing/migrated-file.js'

/** Tables of which an account may have a million rows. */
const LARGE = 'messages|message_attempts|runs|steps|run_waits|audit_log|alerts|notified_events'

interface Statements {
  readonly sqlite: readonly string[]
  readonly postgres: readonly string[]
}

function declaredStatements(): Statements {
  const args = ['--import', './scripts/lib/measured.mjs', 'test/support/declared-statements.ts']
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 24 })
  return JSON.parse(output)
}

const statements = declaredStatements()

it('a statement finds the rows of a list by their keys: SQLite does not walk all rows of the account for them', () => {
  const db = openSqlite(sqliteFileIn(migratedDataDir()), { readOnly: false, busyTimeoutMs: 0 })
  db.exec('CREATE TEMP TABLE shared_numbers (value INTEGER PRIMARY KEY)')
  const planOf = (sql: string): string =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...(sql.match(/\?/g) ?? []).map(() => null))
      .map((step) => (step as { detail: string }).detail)
      .join(' | ')
  // Some statements are of PostgreSQL only.
  const withLists = statements.sqlite.filter(
    (sql) => /json_each|shared_numbers/.test(sql) && !sql.includes(' for update'),
  )
  expect(withLists.length).toBeGreaterThan(150)
  const walk = new RegExp(`(SEARCH (${LARGE}) USING (COVERING )?INDEX \\w+ \\(account_id=\\?\\)|SCAN (${LARGE})\\b)`)
  // A subquery of a row may begin to read all rows and stop at the first one.
  const walking = withLists.filter((sql) => walk.test(planOf(sql).split('CORRELATED')[0] ?? ''))
  db.close()
  expect(walking).toEqual([])
})

describeOnStore('postgres', 'a new store', (_openStore, { newPlace }) => {
  it('finds rows by their ids before PostgreSQL has statistics of any table, and keeps no plan that reads all', async () => {
    const { location } = await newPlace()
    await (await openStore({ location, dataDir: '', onFailure: () => undefined })).close()
    const client = new pg.Client(location)
    await client.connect()
    await client.query('SET enable_seqscan = off')
    // A plan that reads all rows of an account, or all pending messages, and then filters by the id.
    const walk =
      /Index Cond: \(account_id = \$\d+\)\n\s+Filter: .*\b(run_id|log_id|message_id) =|Filter: .*\bgroup_key =/
    const planOf = async (sql: string): Promise<string> => {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (GENERIC_PLAN, COSTS OFF) ${sql}`)
      return rows.map((row) => row['QUERY PLAN']).join('\n')
    }
    const walking: string[] = []
    const pagesOfWaits: string[] = []
    for (const sql of statements.postgres) {
      const plan = await planOf(sql)
      if (walk.test(plan)) walking.push(sql)
      if (/"run_waits" where "account_id" .* "event_id" = .* "seq" > /.test(sql)) pagesOfWaits.push(plan)
    }
    // A plan that PostgreSQL makes for a table with few rows and keeps must not read the whole table when it has grown.
    await client.query('ANALYZE')
    const whole = new RegExp(`Scan using \\w+ on (${LARGE})\\b.*\n(?!\\s+Index Cond)`)
    const locking = statements.postgres.filter((sql) => sql.includes(' for update'))
    expect(locking.length).toBeGreaterThan(30)
    for (const sql of locking) expect(await planOf(sql)).not.toMatch(whole)
    await client.end()
    expect(walking).toEqual([])
    // A page or batch of the waits of an event reads no other waits.
    const inOrder = /^Limit\n\s+->\s+Index Scan .*\n\s+Index Cond: \(\(account_id = .*event_id = .*seq > .*\)$/
    expect(pagesOfWaits).toEqual(Array(3).fill(expect.stringMatching(inOrder)))
  })
})
