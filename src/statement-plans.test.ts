import { expect, it, vi } from 'vitest'
import { openSqlite } from './base/index.js'
import { sqliteDialect } from './store/dialect.js'
import { sqliteFileIn } from './store/open.js'
import { migratedDataDir } from './store/testing/migrated-file.js'
import './transactions.js'

type Query = typeof import('./store/query.js')

const declared = vi.hoisted(() => [] as Pick<ReturnType<Query['query']>, 'compile'>[])

/** The real one, which also notes what it declares. */
vi.mock('./store/query.js', async (original) => {
  const real = await original<Query>()
  const query: Query['query'] = (build) => {
    const made = real.query(build)
    declared.push(made)
    return made
  }
  return { ...real, query }
})

/** Tables of which an account may have a million rows. */
const LARGE = 'messages|message_attempts|runs|steps|run_waits|audit_log|alerts|notified_events'

it('finds the rows of a list by their keys: SQLite does not walk all rows of the account for them', () => {
  const db = openSqlite(sqliteFileIn(migratedDataDir()), { readOnly: false, busyTimeoutMs: 0 })
  const planOf = (sql: string): string =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...(sql.match(/\?/g) ?? []).map(() => null))
      .map((step) => (step as { detail: string }).detail)
      .join(' | ')
  const texts = declared.map((one) => one.compile(sqliteDialect).sql)
  // Some statements are of PostgreSQL only.
  const withLists = texts.filter((sql) => sql.includes('json_each') && !sql.includes(' for update'))
  expect(withLists.length).toBeGreaterThan(150)
  const walk = new RegExp(`(SEARCH (${LARGE}) USING (COVERING )?INDEX \\w+ \\(account_id=\\?\\)|SCAN (${LARGE})\\b)`)
  // A subquery of a row may begin a walk that it ends at once.
  const walking = withLists.filter((sql) => walk.test(planOf(sql).split('CORRELATED')[0] ?? ''))
  db.close()
  expect(walking).toEqual([])
})
