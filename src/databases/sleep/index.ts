/**
 * Sleep: a database that nobody uses costs no process. Its engines are stopped, its data stays on disk, and the next
 * request starts them again and is held meanwhile.
 *
 * ```
 *   request ─▶ endpoints ─▶ wake ─▶ fleet.ensure                      look (one timer)
 *                                        ▲                             │ idle for long enough, or too many awake
 *                                        │                             ▼
 *                                        └── somebody came ◀── log tidied ─▶ connections released ─▶ fleet.rest
 * ```
 *
 * - `sleeper.ts` is the state machine of one database; `bedtime.ts` decides whose time has come, and is pure.
 * - `sleep.ts` is the clockwork: one timer for all databases, set only while one is awake.
 * - `why.ts` tells people what keeps a database awake.
 *
 * What keeps a database awake: requests less than `db_store_max_idle` ago; clients that block, subscribe, monitor, track
 * keys or are in a transaction; work of ours (`during`). What does not: open connections.
 *
 * Promises: no request fails because its database sleeps, is falling asleep or wakes; many at once cause one waking;
 * nothing is written to the store, so after a start every database simply sleeps; a waking that fails is told to all who
 * wait, and tried again by the next request only; a sleeping database costs no process, timer or disk write.
 *
 * It never decides what engines run as (`engine-wish state.ts`), and never stops one under a client who is using it, but for
 * databases that are suspended.
 */
export { Sleep } from './sleep.js'
export type { Task } from './sleeper.js'
export { renderAwake } from './why.js'
