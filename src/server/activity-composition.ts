import { ActivityLog } from '../activity/index.js'
import { type Clock, systemClock } from '../base/index.js'
import type { CountedUse, Databases } from '../databases/index.js'
import { ActivityMeter } from '../telemetry/index.js'
import type { Foundations } from './foundations.js'

/** `queueClock` is the clock of messages and runs, and dates all activity. Default: the system's clock. */
interface ActivityOptions {
  readonly queueClock?: Clock
}

/** The meter of the activity of all accounts. */
export function activityMeter({ queueClock: clock = systemClock }: ActivityOptions): ActivityMeter {
  return new ActivityMeter(() => clock.now())
}

/** The service that stores the activity of accounts and answers requests for it. */
export function composeActivity(
  { store, logger, meters }: Pick<Foundations, 'store' | 'logger' | 'meters'>,
  { databases }: { readonly databases: Pick<Databases, 'usage'> },
  { queueClock: clock = systemClock }: ActivityOptions,
): ActivityLog {
  const collect = (accountId: string): void => databases.usage.collectOf(accountId)
  return new ActivityLog({ store, clock, logger, meter: meters.activity, collect })
}

/** Collected counts are dated this much back, because at the start of a minute they belong to the previous one. */
const COLLECTED_AFTER_MS = 1_000

/** Counts what clients of databases did, whenever their usage is collected. */
export function countUse(activity: ActivityMeter): (use: CountedUse) => void {
  return ({ accountId, commands, refused }) => {
    const at = activity.now - COLLECTED_AFTER_MS
    activity.add(accountId, 'commands', commands, at)
    activity.add(accountId, 'refused_commands', refused, at)
  }
}
