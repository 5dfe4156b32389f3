/**
 * Usage and cost of databases: counted, stored as time series, compared with budgets, and shown.
 *
 *   gateway counts ─▶ meter ─┐
 *                            ├─ collect, every flush interval ─▶ ledger (memory) ─▶ one write ─▶ store ─▶ roll-ups
 *   engines that are awake ──┘                                     │
 *                                                                  ├─▶ admission: read by the gateway for each command
 *                                                                  ├─▶ suspended ◀─▶ active
 *                                                                  └─▶ auto upgrade
 *
 * - `meter-reader.ts` turns the counters of a meter, which only grow, into differences since the last reading.
 * - `cost.ts`: prices and days. `bill.ts`: what a month costs, and how many requests a budget pays for. `ledger.ts`: the
 *   usage of one database in memory, which decides whether the budget is spent.
 * - `pending.ts`, `writer.ts`: usage that is not stored yet, and how it is stored and rolled up.
 * - `usage.ts`: the timer that collects, writes, rolls up, suspends and upgrades.
 * - `suspension.ts`, `auto-upgrade.ts`: the two consequences of usage.
 * - `stats.ts`, `metrics.ts`: the statistics and Prometheus metrics. `docs/usage.md` explains the figures to users.
 *
 * Suspension. A database whose plan charges for use is `suspended` when the cost of the month reaches its budget:
 *
 *       active, passive ── the budget is spent ──▶ suspended
 *       active          ◀── the month turns, the budget is raised, the plan changes ── suspended
 *
 * The ledger knows how many more requests the budget pays for, so the gateway refuses the first one beyond it from
 * memory. The transaction that suspends the database, with its audit entry, follows. The usage is stored before the
 * suspension: otherwise a crash could lose the usage and the database would run on.
 *
 * Guarantees: a crash loses at most the last flush interval; an idle database causes no write; no engine is woken for a
 * sample; the requests of the month are loaded before the first client is served. Unknown figures are 0.
 *
 * Usage never delays a command, and changes a database only by suspension and auto upgrade.
 */
export type { CountedUse, UsageLedger } from './ledger.js'
export { databaseFigures, type MeteredDatabase } from './metrics.js'
export { readStats } from './stats.js'
export { SYSTEM, systemCaller } from './suspension.js'
export { Usage, type UsageDeps } from './usage.js'
