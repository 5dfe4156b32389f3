/** Prints every statement for SQLite as JSON. A program of its own, in which no test has declared statements. */
import { sqliteDialect } from '../../src/store/dialect.js'
import { declaredQueries } from '../../src/store/query.js'
import '../../src/transactions.js'

console.log(JSON.stringify(declaredQueries().map((one) => one.compile(sqliteDialect).sql)))
