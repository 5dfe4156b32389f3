/**
 * Sleep: an idle database costs no process. Its engines are stopped and its data stays on disk. The next request starts
 * the engines and waits for them.
 *
 * ```
 *   request ─▶ endpoints ─▶ wake ─▶ fleet.ensure                      check (one timer)
 *                                        ▲                             │ idle for long enough, or too many awake
 *                                        │                             ▼
 *                                        └── a request ◀── files settled ─▶ connections released ─▶ fleet.suspend
 * ```
 *
 * - `sleeper.ts`: the state machine of one database, and the decision which databases fall asleep. Pure.
 * - `sleep.ts`: one timer for all databases, set only while one is awake.
 * - `why.ts`: explains what keeps a database awake.
 *
 * These keep a database awake: requests less than `db_store_max_idle` ago; clients that block, subscribe, monitor, track
 * keys or are in a transaction; tasks of Homeport (`during`). Open connections alone do not.
 *
 * Guarantees:
 * - No request fails because its database sleeps, is falling asleep or wakes.
 * - Concurrent requests start the engines once.
 * - Nothing is written to the store: after a start every database sleeps.
 * - When the engines fail to start, all waiting requests get the error. Only the next request retries.
 * - A sleeping database costs no process, timer or disk write.
 * - A database falls asleep only when all that it has answered is written.
 *
 * `desired-engine.ts` decides how engines run, not this folder. It never stops an engine that a client is using, unless
 * the database is suspended.
 */
export { Sleep } from './sleep.js'
export type { Task } from './sleeper.js'
export { renderAwake } from './why.js'
