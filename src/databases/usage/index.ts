/**
 * What databases use and what that costs: counted, kept in series, held against budgets, and shown.
 *
 *   gateway counts ─▶ meter ─┐
 *                            ├─ collect, every flush interval ─▶ ledger (memory) ─▶ one write ─▶ store ─▶ roll-ups
 *   engines that are awake ──┘                                     │
 *                                                                  ├─▶ admission: read by the gateway for each command
 *                                                                  ├─▶ suspended ◀─▶ active
 *                                                                  └─▶ auto upgrade
 *
 * - `meter-reader.ts` turns the counters of a meter, which only grow, into what has happened since the last look.
 * - `cost.ts`: prices and days. `ledger.ts`: one database in memory; it decides whether its budget is spent.
 * - `usage.ts`: the clockwork: collects, writes, rolls up, suspends, upgrades.
 * - `suspension.ts`, `auto-upgrade.ts`: the two consequences.
 * - `stats.ts`: what the management API shows of it. `docs/usage.md` tells users what the figures mean.
 *
 * Suspension. A database whose plan charges for use is `suspended` when the cost of the month reaches its budget:
 *
 *       active, passive ── the budget is spent ──▶ suspended
 *       active          ◀── the month turns, the budget is raised, the plan changes ── suspended
 *
 * The ledger knows how many more requests the budget pays for, so the gateway refuses the first one beyond it from
 * memory; the state follows as a transaction with an entry in the audit log. What was counted is written down before
 * the database is suspended, so that a crash does not let it go on.
 *
 * Promises: a crash loses at most the last flush interval; a database that does nothing causes no write; no engine is
 * woken to look at it; the requests of the month are known before the first client is served. What is not known is 0.
 *
 * This room never delays a command, and changes a database only by the two consequences.
 */
export type { UsageLedger } from './ledger.js'
export { databaseMetrics } from './metrics.js'
export { readStats } from './stats.js'
export { Usage, type UsageDeps } from './usage.js'
