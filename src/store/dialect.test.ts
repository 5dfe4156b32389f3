import { expect, it } from 'vitest'
import { sqliteDialect } from './dialect.js'
import { query } from './query.js'

it('leaves numbers that never change in the text of a statement, so that SQLite plans it once', () => {
  const oldest = query<{ kind: string }>(({ db, p }) =>
    db.selectFrom('messages').select('seq').where('retried', '>', 0).where('kind', '=', p.kind).orderBy('seq').limit(1),
  )
  const { sql, slots } = oldest.compile(sqliteDialect)
  expect(sql).toMatch(/"retried" > 0 and "kind" = \? order by "seq" limit 1$/)
  expect(slots).toEqual([{ parameter: 'kind' }])
})
