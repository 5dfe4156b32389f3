/**
 * Databases: the management side. This module validates a request, commits the desired state, has the fleet start the
 * engines, publishes the database to the data plane, and answers with the database's record.
 *
 *   request ─ rules ─ row `creating` ─┬─ fleet: engines and replication ─┬─ row without `creating` ─ record
 *                                     └─ gateway: the port is open ──────┘
 *                                     any failure: stop serving ─ fleet removes ─ delete row and idempotency key
 *
 * `lifecycle.ts` has the states of a database and says who may change them.
 *
 * - `rules.ts` validates a request beyond its schema; `plan-file.ts` reads the operator's plans.
 * - `creation.ts`, `deletion.ts`: the two long changes. After a crash the next start rolls a creation back and completes
 *   a deletion.
 * - `changes/`: everything else that an owner can change; `changes/changer.ts` says how, and what happens after a crash.
 * - `desired-engine.ts`: the desired state of a database's engines, with their users and permissions.
 * - `start-up.ts`: brings rows and files together after a crash, before any database is served.
 * - `records.ts`: what callers are shown of databases. `summaries.ts`: lists and counts of databases, from memory.
 * - `directory.ts`: credentials and limits of all served databases, in memory, for the data plane.
 * - `losses.ts`: damaged or missing data: recorded, reported, and cleared.
 * - `routes.ts`: the operations of the management API.
 * - `sleep/`: stops the engines of idle databases and starts them with the next request.
 * - `users/`: users that owners create, and the settings that clients may change.
 * - `usage/`: requests, bandwidth, storage and cost of each database; budgets and statistics.
 * - `backups/`: snapshots, restores, imports and exports.
 * - `moves/`: moves databases to other nodes of a cluster.
 * - `replicas/`: makes nodes of read regions keep replicas and answer reads.
 * - `standbys/`: keeps copies of databases on other nodes.
 * - `quarantine/`: files that the store does not know.
 *
 * Guarantees:
 * - When a creation answers 200, the database accepts commands and every read region replicates.
 * - A creation that fails leaves no row, process, file or open port.
 * - The same Idempotency-Key creates one database, however often and whenever it is sent.
 * - When a deletion answers "OK", nothing of the database is left.
 * - Ports are unique. A database keeps its port for life.
 *
 * This module starts no process and opens no socket, and it sends no engine command. The exception is `backups/copy.ts`,
 * which reads from foreign servers.
 */
export { createDatabases } from './databases.js'
export type { DatabaseSettings, DatabasesDeps } from './deps.js'
export { type DataUser, type ServedDatabase, ServingDirectory } from './directory.js'
export type { Databases } from './interface.js'
export { removeNodeWithDatabases } from './lost-homes.js'
export { listMoves, type Moves, requestMove } from './moves/index.js'
export { loadPlans } from './plan-file.js'
export { refuseLostStore } from './quarantine/index.js'
export { databaseRoutes, withHomes } from './routes.js'
export { dropStandby, listStandbys, placeStandby, placeStandbys, putStandby, type Standbys } from './standbys/index.js'
export { summariesOf, tallyOf, usageOf } from './summaries.js'
export { type CountedUse, databaseFigures, systemCaller } from './usage/index.js'
