import { getActivity } from '../contract/console/activity.js'
import { type Route, route } from '../http/index.js'
import type { ActivityLog } from './activity-log.js'

/** The operation that reads what the caller's account did lately. */
export function activityRoutes(log: Pick<ActivityLog, 'read'>): Route[] {
  return [route(getActivity, ({ caller, query }) => log.read(caller.accountId, query.period ?? '1h'))]
}
