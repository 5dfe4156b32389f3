/**
 * What accounts did lately: messages, runs, commands and failures by minute, for Home and `GET /v2/console/activity`.
 *
 * ```
 *   queue, workflow, bulk, databases ── ActivityMeter (telemetry), in memory ──┐ once a minute, while something is counted
 *                                                                              ▼
 *                  ActivityLog.read ◀── blocks in memory + blocks of others ── table activity
 * ```
 *
 * - The modules count in the `ActivityMeter` after the commit: one look-up and one addition.
 * - A *block* holds the counts of one account in one process for a quarter of an hour, by minute. A write replaces the whole
 *   row of a block, so a repeated write counts nothing twice. A read adds the rows of several processes.
 * - An idle server has no timer here and writes nothing.
 * - A stop stores everything; a crash loses at most the last minute. Rows are kept for 25 hours.
 *
 * Counting never delays the work that it counts, and no module depends on it. Reasons: docs/decisions/activity.md.
 */
export { ActivityLog, type ActivityLogDeps } from './activity-log.js'
export { activityRoutes } from './activity-routes.js'
