import type { SqliteDatabase, SqliteStatement } from '../../base/index.js'

/** More statements than all transactions have, apart from lists with rare conditions. Each takes about 20 KB. */
const MAX_STATEMENTS = 2_000

/**
 * The prepared statements of one connection, each prepared once. Callers can make any number of different ones by the
 * conditions of their lists, so the oldest one is dropped when there are too many, and prepared again when it is needed.
 */
export class PreparedStatements {
  readonly #db: SqliteDatabase
  readonly #most: number
  readonly #prepared = new Map<string, SqliteStatement>()

  /** @param most statements that are kept. */
  constructor(db: SqliteDatabase, most = MAX_STATEMENTS) {
    this.#db = db
    this.#most = most
  }

  /** The statement with this SQL. */
  of(sql: string): SqliteStatement {
    const known = this.#prepared.get(sql)
    if (known) return known
    const made = this.#db.prepare(sql)
    const [oldest] = this.#prepared.keys()
    if (oldest !== undefined && this.#prepared.size >= this.#most) this.#prepared.delete(oldest)
    this.#prepared.set(sql, made)
    return made
  }
}
