/**
 * The store: durable state in SQLite or PostgreSQL. This module is infrastructure only: it runs transactions and does not
 * know what they mean. It knows no run, no message and no database.
 *
 * Other modules declare named transactions such as `messages.publish` in their folders `transactions/` and run them with
 * `Store.run(transaction, args)`. A transaction is atomic, and durable when its promise resolves. SQL stands only in those
 * folders, and no caller knows which database runs it.
 *
 *   transaction (generator of statements) ── SQLite: a writer thread, many transactions in one commit; a reader thread
 *                                        └── PostgreSQL: a transaction on a pooled connection
 *
 * - `schema/`: types of the tables, by subject. `migrations/`: the statements that create and change them.
 * - `operation.ts`: named transactions, and how calls of them are combined. `statement.ts`: what their bodies yield.
 * - `query.ts`: queries, declared once with Kysely over named parameters and compiled once per dialect.
 * - `dialect.ts`: all differences between the two databases, as small named capabilities.
 * - `incarnation.ts`: ends the connections of a node that the cluster has declared dead.
 * - `checksum.ts`, `check.ts`: detection of damaged data while reading, and by `homeport doctor`.
 * - `copy/`: copies the store of a stopped server from one database to the other.
 * - `maintenance.ts`: exports for commands; a server does not load it. A server on SQLite does not load `postgres/` either.
 * - `sqlite/`, `postgres/`: the two implementations. `testing/`: runs a test suite on both.
 *
 * Guarantees:
 * - A resolved write survives SIGKILL and a power cut. A rejected one has changed nothing, unless the error is
 *   `store_outcome_unknown`.
 * - A read sees one snapshot. Awaited operations of one caller run in order. A refused operation does not affect others
 *   in the same commit.
 * - One node uses a store at a time, or the nodes of one cluster on PostgreSQL. There every connection is guarded by a
 *   shared lock and the row of the holder (`postgres/node-lock.ts`), so that no connection can write after another node or
 *   cluster has taken the store. What one node of a cluster does and the others do not is decided in `cluster/`;
 *   a node that was declared dead can no longer commit (`postgres/incarnation-lock.ts`).
 * - A full disk (`store_full`) and an unreachable PostgreSQL server (`store_unavailable`) are temporary. If the store has
 *   failed for good, it calls `onFailure`, and the process must end.
 * - The store never retries a write whose commit may have succeeded. That decision belongs to the caller.
 *
 * How to write a transaction: `docs/store.md`.
 */

export type { StoreDamage } from './damage.js'
export { AfterLostCommits, type AfterLostCommitsDeps } from './lost-commits.js'
export { SCHEMA_RANGE } from './migrations/migration.js'
export { hasSqliteStore, openStore } from './open.js'
export { isPassing } from './passing.js'
export { type CopiedDatabase, type CopyContents, contentsOfCopy, copyRunning, newestSchema } from './running-copy.js'
export type { SchemaRange } from './schema/cluster.js'
export { checkSqliteStore } from './sqlite/check.js'
export type { Store, StoreDescription, StoreSharing } from './types.js'
