import { existsSync } from 'node:fs'
import type { SqliteDatabase, SqliteOpening, SqliteStatement } from './types.js'

/** What is used of `node:sqlite`. The types of the oldest supported Node do not have it. */
interface NodeDatabase {
  readonly isOpen: boolean
  readonly isTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

/** The module `node:sqlite`. */
export interface NodeSqlite {
  readonly DatabaseSync: new (path: string, options: { readonly readOnly: boolean }) => NodeDatabase
}

/**
 * Node's own driver; undefined before Node 22.16, which says whether a transaction is open. Node warns on loading it that
 * it is experimental; that is of no use to people who run the server.
 */
export function loadNodeSqlite(): NodeSqlite | undefined {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    const found = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as NodeSqlite | undefined
    return found && saysTransaction(found) ? found : undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

function saysTransaction({ DatabaseSync }: NodeSqlite): boolean {
  const db = new DatabaseSync(':memory:', { readOnly: false })
  try {
    return 'isTransaction' in db
  } finally {
    db.close()
  }
}

/** A file opened by `node:sqlite`. */
export class NodeSqliteDatabase implements SqliteDatabase {
  readonly #db: NodeDatabase

  constructor(
    { DatabaseSync }: NodeSqlite,
    path: string,
    { readOnly, mustExist, busyTimeoutMs }: Required<SqliteOpening>,
  ) {
    if (mustExist && !existsSync(path))
      throw Object.assign(new Error('unable to open database file'), { code: 'SQLITE_CANTOPEN' })
    this.#db = new DatabaseSync(path, { readOnly })
    this.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  }

  get isOpen(): boolean {
    return this.#db.isOpen
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  prepare(sql: string): SqliteStatement {
    return this.#db.prepare(sql)
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}
