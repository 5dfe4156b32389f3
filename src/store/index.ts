/**
 * Durable state behind one seam. This module is infrastructure: it knows transactions, not what they mean.
 *
 * The other modules declare named transactions such as `messages.publish`, each in its own folder `transactions/`, and run
 * them with `Store.run(transaction, args)`. A transaction either happens wholly and is on disk when it resolves, or does
 * not happen. No SQL stands outside of those folders, and nobody knows which database is behind them.
 *
 *   transaction (generator of statements) ── SQLite: a writer thread, many transactions in one commit; a reader thread
 *                                        └── PostgreSQL: a transaction on a pooled connection
 *
 * - `schema/`: the tables as types, one file a room; `migrations/`: the same as numbered statements.
 * - `query.ts`: a query is declared once with Kysely over named parameters and compiled once for each dialect.
 * - `operation.ts`: what a transaction is and how its body asks for rows.
 * - `dialect.ts`: everything in which the two databases differ, as small named capabilities.
 *
 * Promises: a resolved write survives SIGKILL and a power cut; a rejected one has changed nothing, unless it was
 * rejected with `store_outcome_unknown`; operations of one caller run in the order in which they were asked for when
 * the caller awaits them; a reading operation sees one snapshot; an operation that is refused does no harm to those
 * that share its commit. A full disk (`store_full`) and a PostgreSQL server that is away (`store_unavailable`) pass;
 * when the store can never work again, `onFailure` is called and the process has to end.
 *
 * The store never retries a write whose commit may have happened, and never decides anything: that is the caller's
 * module. `testing/` runs a suite on both databases; `docs/store.md` tells how to write an operation.
 */

export { type CheckDepth, checkPostgresStore, checkSqliteStore, type StoreReport } from './check.js'
export type { StoreDamage } from './damage.js'
export { hasSqliteStore, openStore } from './open.js'
export type { Store, StoreDescription } from './types.js'
