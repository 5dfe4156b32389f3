/**
 * What accounts did lately: messages, runs, commands and failures by minute, for Home and `GET /v2/console/activity`.
 *
 * ```
 *   queue, workflow, bulk, databases ── ActivityMeter (telemetry), in memory ──┐ once a minute, while something is counted
 *                                                                              ▼
 *                  ActivityLog.read ◀── blocks in memory + blocks of others ── table activity
 * ```
 *
 * - The modules count in the `ActivityMeter`: a look-up and an addition, after the commit of what is counted.
 * - A *block* is what one process has counted of one account in a quarter of an hour, by minute. The row of a block is
 *   replaced as a whole, so a repeated write counts nothing twice. Rows of several processes are added when they are read.
 * - An idle server has no timer here and writes nothing.
 * - A stop stores everything; a crash loses at most the last minute. Rows are kept for 25 hours.
 *
 * It never holds up what it counts, and nothing depends on it. Why it is made like this: docs/decisions/activity.md.
 */
export { ActivityLog, type ActivityLogDeps } from './activity-log.js'
export { activityRoutes } from './activity-routes.js'
