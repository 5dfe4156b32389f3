import { type RawBuilder, sql } from 'kysely'
import { type Dialect, sqliteDialect } from '../dialect.js'
import { change, type Operation, type Transaction, write } from '../operation.js'
import { query } from '../query.js'
import type { Tables } from '../schema/index.js'
import { SqliteConnection } from '../sqlite/connection.js'

/** One of the numbers of a short list, which is cheaper to search as a text than to make a table of. */
const isListed = (column: string, list: readonly number[]): RawBuilder<boolean> =>
  sql<boolean>`instr(replace(replace(${list}, '[', ','), ']', ','), ',' || ${sql.ref(column)} || ',')`

/** SQLite as several nodes would use it: a message has its partition, as on PostgreSQL. */
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

/**
 * The real transactions on a SQLite database in the memory of this process, one after the other, without threads: for
 * simulations of several nodes. An operation has happened when the call returns.
 */
export class MemoryStore {
  readonly #connection = new SqliteConnection(':memory:', 'write', undefined, dialect)

  constructor() {
    this.#connection.migrate(0)
  }

  /** @throws what the operation throws; then nothing has changed. */
  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Result {
    const work = (): unknown => this.#connection.run(operation as Operation<never, unknown>, args)
    // Safe: the connection runs this operation.
    return (operation.access === 'write' ? this.#connection.inTransaction(work) : work()) as Result
  }

  /** As it was when it was new. */
  clear(): void {
    this.run(clearAll, {})
  }

  close(): void {
    this.#connection.close()
  }
}
