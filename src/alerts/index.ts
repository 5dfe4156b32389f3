/**
 * Notifies accounts of what needs a person, such as a dead letter or a spent budget.
 *
 *   dead letters, failed runs, failed backups ─ read since the last mark ─┐
 *                                                                        ├─▶ alert (pending) ── due ──▶ settled: history
 *   budgets, schedules, backups, disk, certificate, engines, problems ────┘        ▲                      │
 *                   judged: new, worse, a day later, or ended            later occurrences          messages of the queue
 *
 * - `watch.ts`: one timer that looks for events and states, and publishes due notifications. Deliveries and runs do no extra
 *   work for alerts: their stored results are read afterwards (`transactions/alerts-sources.ts`).
 * - `nodes.ts`: collects the observations of the other nodes of a cluster.
 * - `conditions.ts`: states that last, judged by the thresholds of the account's rules. `episodes.ts`: when they begin,
 *   are repeated and end.
 * - `settle.ts`: which channels get an alert now, later or not at all. `notify.ts`: its message. `words.ts`: its text.
 * - `routes.ts`: the operations of the management API.
 *
 * Guarantees:
 * - An event raises its alert in the transaction that moves the mark past it. A notification is published in the transaction
 *   that settles its alert. So a crash neither loses nor repeats an alert or a notification.
 * - A channel gets at most one notification about a rule and subject within its group time, and a bounded number within
 *   an hour.
 * - A channel that was notified of a state is notified of its end, once.
 * - A notification that cannot be delivered raises no alert.
 *
 * Notifications are ordinary messages of the account: signed, retried and shown in its queue. Alerts about the server
 * belong to its first account.
 */
import type { Service } from '../base/index.js'
import type { Route } from '../http/index.js'
import { type AlertRoutesDeps, alertRoutes } from './routes.js'
import { AlertWatch, type AlertWatchDeps } from './watch.js'

export type { DiskFigures, WatchedDatabase } from './conditions.js'
export type { AlertSources } from './nodes.js'

/** The collaborators of the module. */
export interface AlertsDeps extends Omit<AlertWatchDeps, 'link'>, Omit<AlertRoutesDeps, 'link'> {
  /** URL of the management listener for browsers. */
  readonly publicUrl: string
}

/** The service and its HTTP operations. It starts after the queue. */
export interface Alerts extends Service {
  routes(): readonly Route[]
}

/** Builds the module; nothing runs before `start`. */
export function createAlerts(deps: AlertsDeps): Alerts {
  const link = `${deps.publicUrl.replace(/\/$/, '')}/alerts`
  const watch = new AlertWatch({ ...deps, link })
  const routes = alertRoutes({ ...deps, link })
  return { name: 'alerts', start: () => watch.start(), stop: () => watch.stop(), routes: () => routes }
}
