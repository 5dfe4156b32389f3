import { existsSync } from 'node:fs'
import type { SqliteDatabase, SqliteOpening, SqliteStatement } from './types.js'

/** The members of `node:sqlite` that are used here. The types of the oldest supported Node lack the module. */
interface NodeDatabase {
  readonly isOpen: boolean
  readonly isTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

interface NodeModule {
  readonly DatabaseSync: new (path: string, options: { readonly readOnly: boolean }) => NodeDatabase
}

/** The module `node:sqlite`, and a defect that it has in some versions. */
export interface NodeSqlite extends NodeModule {
  /** Whether it binds empty bytes from another thread as NULL, as Node 22 does: such an array has no address. */
  readonly losesEmptyBytes: boolean
}

/**
 * Node's own driver; undefined before Node 22.16, the first that reports whether a transaction is open. Hides Node's warning
 * that the module is experimental, which is of no use to operators.
 */
export function loadNodeSqlite(): NodeSqlite | undefined {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    const found = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as NodeModule | undefined
    return found && tried(found)
  } finally {
    process.emitWarning = emitWarning
  }
}

function tried({ DatabaseSync }: NodeModule): NodeSqlite | undefined {
  const db = new DatabaseSync(':memory:', { readOnly: false })
  try {
    if (!('isTransaction' in db)) return undefined
    const isBytes = db.prepare('SELECT 1 WHERE ? IS NOT NULL').get(structuredClone(new Uint8Array()))
    return { DatabaseSync, losesEmptyBytes: isBytes === undefined }
  } finally {
    db.close()
  }
}

/** Empty bytes with an address. */
const EMPTY_BYTES = new Uint8Array(1).subarray(1)

const addressed = (value: unknown): unknown =>
  value instanceof Uint8Array && value.byteLength === 0 ? EMPTY_BYTES : value

/** A statement that binds empty bytes as bytes, not as NULL. */
class KeepingEmptyBytes implements SqliteStatement {
  readonly #statement: SqliteStatement

  constructor(statement: SqliteStatement) {
    this.#statement = statement
  }

  all(...values: readonly unknown[]): unknown[] {
    return this.#statement.all(...values.map(addressed))
  }

  get(...values: readonly unknown[]): unknown {
    return this.#statement.get(...values.map(addressed))
  }

  iterate(...values: readonly unknown[]): Iterable<unknown> {
    return this.#statement.iterate(...values.map(addressed))
  }

  run(...values: readonly unknown[]): ReturnType<SqliteStatement['run']> {
    return this.#statement.run(...values.map(addressed))
  }
}

/** A file opened by `node:sqlite`. */
export class NodeSqliteDatabase implements SqliteDatabase {
  readonly #db: NodeDatabase
  readonly #losesEmptyBytes: boolean

  constructor(
    { DatabaseSync, losesEmptyBytes }: NodeSqlite,
    path: string,
    { readOnly, mustExist, busyTimeoutMs }: Required<SqliteOpening>,
  ) {
    if (mustExist && !existsSync(path))
      throw Object.assign(new Error('unable to open database file'), { code: 'SQLITE_CANTOPEN' })
    this.#db = new DatabaseSync(path, { readOnly })
    this.#losesEmptyBytes = losesEmptyBytes
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
    const statement = this.#db.prepare(sql)
    return this.#losesEmptyBytes ? new KeepingEmptyBytes(statement) : statement
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}
