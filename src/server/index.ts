/**
 * The whole server: `createApp` builds every module once and wires them. Nothing else knows them all.
 *
 * Services start in the order of the list in `compose` (`app.ts`) and stop in reverse; the store closes last:
 *
 *   accounts ─ certificate ─ fleet ─ databases ─ usage ─┬─ gateway
 *                                                       ├─ queue, workflow
 *                                                       ├─ management listener, queue listener
 *                                                       └─ bulk, alerts, backups
 *
 * Services side by side stop at the same time: each takes on nothing new and finishes its work in flight, for which it
 * needs only the services before it. So a slow delivery does not shorten the grace period of a database's clients.
 *
 * Some modules use each other: the gateway wakes databases, and databases release their engines through the gateway. The
 * one that is built first gets a `Port`, which is bound to the other as soon as that exists (`database-composition.ts`).
 *
 * Besides the composition, the operations that need several modules are here: the overview of the console (`console.ts`),
 * metrics and the log of the server, the operator's operations on nodes and on the queues of accounts, and the deletion of
 * accounts.
 */
export { type App, type AppOptions, createApp } from './app.js'
