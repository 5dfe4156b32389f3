/** Prints every statement of both dialects as JSON. It is a program of its own, so that it prints no statements of tests. */
import { postgresDialect, sqliteDialect } from '../../src/store/dialect.js'
import { declaredQueries } from '../../src/store/query.js'
import '../../src/transactions.js'

const statementsIn = (dialect: typeof sqliteDialect): string[] =>
  declaredQueries().map((one) => one.compile(dialect).sql)

console.log(JSON.stringify({ sqlite: statementsIn(sqliteDialect), postgres: statementsIn(postgresDialect) }))
