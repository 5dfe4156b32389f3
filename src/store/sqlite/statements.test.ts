import { expect, it } from 'vitest'
import { openSqlite } from '../../base/index.js'
import { PreparedStatements } from './statements.js'

it('a statement is prepared once, and the oldest is dropped when there are too many', () => {
  const db = openSqlite(':memory:')
  try {
    const statements = new PreparedStatements(db, 2)
    const [first, second] = [statements.of('SELECT 1 AS n'), statements.of('SELECT 2 AS n')]
    expect([statements.of('SELECT 1 AS n'), statements.of('SELECT 2 AS n')]).toEqual([first, second])
    expect(statements.of('SELECT 3 AS n').all()).toEqual([{ n: 3 }])
    expect(statements.of('SELECT 2 AS n')).toBe(second)
    const again = statements.of('SELECT 1 AS n')
    expect(again).not.toBe(first)
    expect(again.all()).toEqual([{ n: 1 }])
  } finally {
    db.close()
  }
})
