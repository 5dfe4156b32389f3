import { type RawBuilder, sql } from 'kysely'
import { type Dialect, sqliteDialect } from '../dialect.js'
import { type Operation, write } from '../operation.js'
import { query } from '../query.js'
import type { Tables } from '../schema/index.js'
import { SqliteConnection } from '../sqlite/connection.js'
import { change, type Transaction } from '../statement.js'

/** Whether the column has a number of a short list. Searching the list as a text is cheaper than making a table of it. */
const isListed = (column: string, list: readonly number[]): RawBuilder<boolean> =>
  sql<boolean>`instr(replace(replace(${list}, '[', ','), ']', ','), ',' || ${sql.ref(column)} || ',')`

/** The dialect of SQLite for several nodes: a message has its partition, as on PostgreSQL. */
const dialect: Dialect = {
  ...sqliteDialect,
  partition: sql.ref<number>('partition'),
  inNumbers: (column, list) =>
    column === 'partition' ? isListed(column, list) : sqliteDialect.inNumbers(column, list),
}

/** The tables that a cluster with runs and bulk actions writes. */
const TABLES = [
  ...(['messages', 'message_attempts', 'message_keys', 'queues', 'queue_turns', 'schedules', 'flow_keys'] as const),
  ...(['rule_keys', 'runs', 'run_rule_keys', 'steps', 'run_waits', 'run_events', 'run_webhooks'] as const),
  ...(['run_remains', 'run_attempts', 'cancelled_deliveries', 'run_returns'] as const),
  ...(['bulk_actions', 'bulk_chunks', 'paused_workflows', 'notified_events', 'audit_log'] as const),
  ...(['nodes', 'node_generations', 'node_regions', 'announcements'] as const),
] as const satisfies readonly (keyof Tables)[]

const removals = TABLES.map((table) => query<object>(({ db }) => db.deleteFrom(table)))
const freePartitions = query<object>(({ db }) =>
  db.updateTable('partitions').set({ owner: null, epoch: 0, notes: null }),
)
const freeLeases = query<object>(({ db }) => db.updateTable('leases').set({ owner: null, epoch: 0 }))
const restartNumbers = query<object>(({ db }) => ({
  compile: () => sql`delete from sqlite_sequence`.compile(db),
}))

const clearAll = write('memory.clear', function* (_: object): Transaction<void> {
  for (const each of [...removals, freePartitions, freeLeases, restartNumbers]) yield* change(each, {})
})

/** Statements that Kysely has no builder for. */
const savepoint = (name: string, text: string) => {
  const statement = query<object>(({ db }) => ({ compile: () => sql.raw(text).compile(db) }))
  return write(`memory.${name}`, function* (_: object): Transaction<void> {
    yield* change(statement, {})
  })
}
const mark = savepoint('mark', 'savepoint marked')
const rollBack = savepoint('rollBack', 'rollback to marked')
const release = savepoint('release', 'release marked')

/** More numbers than a simulation assigns. */
const SKIPPED = 100_000
const skipNumbers = [
  ...(['messages', 'runs', 'bulk_actions', 'nodes'] as const).map((table) =>
    savepoint(
      `skip.${table}`,
      `insert or replace into sqlite_sequence (rowid, name, seq) select (select rowid from sqlite_sequence where name = '${table}'),
        '${table}', coalesce((select seq from sqlite_sequence where name = '${table}'), 0) + ${SKIPPED}`,
    ),
  ),
  savepoint('skip.announcements', `update leases set epoch = epoch + ${SKIPPED} where name = 'announcements'`),
]

/**
 * The real transactions on a SQLite database in the memory of this process, one after the other, without threads: for
 * simulations of several nodes. An operation is committed when the call returns.
 */
export class MemoryStore {
  readonly #connection = new SqliteConnection(':memory:', 'write', undefined, dialect)
  #isMarked = false

  constructor() {
    this.#connection.migrate(0)
  }

  /** @throws what the operation throws; then nothing has changed. */
  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Result {
    const connection = this.#connection
    const work = (): unknown => connection.run(operation as Operation<never, unknown>, args)
    const transact = (): unknown => (this.#isMarked ? connection.inSavepoint(work) : connection.inTransaction(work))
    // Safe: the connection runs this operation.
    return (operation.access === 'write' ? transact() : work()) as Result
  }

  get isMarked(): boolean {
    return this.#isMarked
  }

  /** Sets a mark: `goBack` undoes what is committed after it. */
  mark(): void {
    this.keep()
    this.#connection.run(mark, {})
    this.#isMarked = true
  }

  /** Restores the state at the mark, like a server that takes over without the last commits. */
  goBack(): void {
    if (this.#isMarked) this.#connection.run(rollBack, {})
    this.keep()
    // As `skipNumbers` of `postgres/skip-numbers.ts`, which a node runs before it uses another server.
    for (const skip of skipNumbers) this.run(skip, {})
  }

  /** Removes the mark and keeps everything that was committed since. */
  keep(): void {
    if (this.#isMarked) this.#connection.run(release, {})
    this.#isMarked = false
  }

  /** Restores the state of a new store. */
  clear(): void {
    this.keep()
    this.run(clearAll, {})
  }

  close(): void {
    this.#connection.close()
  }
}
