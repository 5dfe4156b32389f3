/** Prints every statement of both dialects as JSON. A program of its own, in which no test has declared statements. */
import { postgresDialect, sqliteDialect } from '../../src/store/dialect.js'
import { declaredQueries } from '../../src/store/query.js'
import '../../src/transactions.js'

const statementsIn = (dialect: typeof sqliteDialect): string[] =>
  declaredQueries().map((one) => one.compile(dialect).sql)

console.log(JSON.stringify({ sqlite: statementsIn(sqliteDialect), postgres: statementsIn(postgresDialect) }))
