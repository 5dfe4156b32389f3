/** A compiled statement. */
export interface SqliteStatement {
  /** Rows as objects. */
  all(...values: readonly unknown[]): unknown[]
  /** The first row; undefined when there is none. */
  get(...values: readonly unknown[]): unknown
  iterate(...values: readonly unknown[]): Iterable<unknown>
  run(...values: readonly unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint }
}

/** An open database file. */
export interface SqliteDatabase {
  readonly isOpen: boolean
  /** Whether a transaction is open: SQLite ends it by itself after some errors. */
  readonly inTransaction: boolean
  /** Runs statements without results. */
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

/** How a file is opened. */
export interface SqliteOpening {
  /** Default false. A file that is opened like this must exist. */
  readonly readOnly?: boolean
  /** Whether a missing file is an error. Default false: it is created. */
  readonly mustExist?: boolean
  /** How long a statement waits for a lock of another connection. Default 5,000. */
  readonly busyTimeoutMs?: number
}
