/**
 * Databases: the management side. A caller says what should be; this room judges the desired state, writes it down, lets the
 * fleet make it real, tells the data plane whom to serve, and answers with the record.
 *
 *   request ─ rules ─ row `creating` ─┬─ fleet: engines and replication ─┬─ row without `creating` ─ record
 *                                     └─ gateway: the port is open ──────┘
 *                                     any failure: stop serving ─ fleet removes ─ row and idempotency key go
 *
 * The states of a database and who may change them stand in `life.ts`.
 *
 * - `rules.ts` judges a request beyond its schema; `plan-file.ts` reads the operator's plans.
 * - `creation.ts`, `deletion.ts`: the two long changes, each undone or ended after a crash by the next start.
 * - `changes/`: everything else that an owner can change; `changes/changer.ts` tells how, and what a crash leaves.
 * - `engine-wish state.ts`: what the engines of a database have to be, users and their rights included.
 * - `summaries.ts`: short facts of many databases, from memory.
 * - `directory.ts`: who may log in to what, in memory, for the data plane.
 * - `sleep/`: engines of databases that nobody uses rest, and wake with the next request; a page of its own tells more.
 * - `users/`: users of the data besides the two that every database has, and what clients may configure.
 * - `usage/`: what databases use and cost, their budgets and statistics; a page of its own tells more.
 * - `backups/`: snapshots, restores, imports and exports; a page of its own tells more.
 *
 * Promises: 200 to a creation means that the database accepts commands and every read region replicates; a creation
 * that fails leaves no row, process, file or open port; the same Idempotency-Key makes one database however often and
 * whenever it is sent; a deleted database has left nothing behind when "OK" is sent; ports are unique and kept for life.
 *
 * This room starts no process and opens no socket, and knows no command of the engine, but for `backups/copy.ts`, which
 * reads from servers that are not ours.
 */
export { createDatabases, type Databases } from './databases.js'
export type { DatabaseSettings, DatabasesDeps } from './deps.js'
export { type DataUser, type ServedDatabase, ServingDirectory } from './directory.js'
export { loadPlans } from './plan-file.js'
export { refuseLostStore } from './quarantine/index.js'
export { databaseRoutes } from './routes.js'
