import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { openSqlite } from './base/index.js'
import { sqliteFileIn } from './store/open.js'
import { migratedDataDir } from './store/testing/migrated-file.js'

/** Tables of which an account may have a million rows. */
const LARGE = 'messages|message_attempts|runs|steps|run_waits|audit_log|alerts|notified_events'

function declaredStatements(): readonly string[] {
  const args = ['--import', './scripts/lib/measured.mjs', 'test/support/declared-statements.ts']
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 24 })
  return JSON.parse(output)
}

it('finds the rows of a list by their keys: SQLite does not walk all rows of the account for them', () => {
  const db = openSqlite(sqliteFileIn(migratedDataDir()), { readOnly: false, busyTimeoutMs: 0 })
  const planOf = (sql: string): string =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...(sql.match(/\?/g) ?? []).map(() => null))
      .map((step) => (step as { detail: string }).detail)
      .join(' | ')
  // Some statements are of PostgreSQL only.
  const withLists = declaredStatements().filter((sql) => sql.includes('json_each') && !sql.includes(' for update'))
  expect(withLists.length).toBeGreaterThan(150)
  const walk = new RegExp(`(SEARCH (${LARGE}) USING (COVERING )?INDEX \\w+ \\(account_id=\\?\\)|SCAN (${LARGE})\\b)`)
  // A subquery of a row may begin a walk that it ends at once.
  const walking = withLists.filter((sql) => walk.test(planOf(sql).split('CORRELATED')[0] ?? ''))
  db.close()
  expect(walking).toEqual([])
})
