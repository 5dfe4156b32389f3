import type { Static } from 'typebox'
import type { getSchedule } from '../../contract/queue/schedules.js'
import type { MessageState } from '../../store/schema/index.js'
import { configOf, DEFAULT_RETRIES, labelColumn } from '../publish/draft.js'
import { forwardedHeaders } from '../publish/forward.js'
import { AS_ACCEPTED, readSettings } from '../publish/settings.js'
import { headersOfSchedule } from '../schedules/schedule.js'
import type { ScheduleRow, ScheduleWithStates } from '../transactions/schedules.js'
import { bodyMembers, mutable, settingMembers } from './message-view.js'
import { redactHeaders } from './redact.js'

/** A schedule as the wire shows it. */
export type ScheduleView = Static<typeof getSchedule.success.body>

function stateOf(state: MessageState): 'IN_PROGRESS' | 'SUCCESS' | 'FAIL' {
  switch (state) {
    case 'held':
    case 'pending':
      return 'IN_PROGRESS'
    case 'delivered':
      return 'SUCCESS'
    case 'failed':
    case 'canceled':
      return 'FAIL'
  }
}

/** The last and the next fire. */
function fireMembers({ schedule, states }: ScheduleWithStates): Partial<ScheduleView> {
  return {
    isPaused: schedule.paused === 1,
    ...(schedule.last_at !== null && { lastScheduleTime: schedule.last_at }),
    ...(schedule.next_at !== null && { nextScheduleTime: schedule.next_at }),
    ...(states.length > 0 && {
      lastScheduleStates: Object.fromEntries(states.map(({ message_id, state }) => [message_id, stateOf(state)])),
    }),
    ...(schedule.error !== null && { error: schedule.error }),
  }
}

/** The settings that its messages will have. */
function messageMembers(row: ScheduleRow) {
  const headers = headersOfSchedule(row)
  const settings = readSettings(headers, row.created_at, AS_ACCEPTED)
  const config = configOf(settings)
  const labels = labelColumn(settings.labels)
  const columns = { labels, flow_key: settings.flowKey ?? null, queue: row.queue }
  return {
    method: settings.method ?? 'POST',
    header: mutable(redactHeaders(forwardedHeaders(headers, settings.forwardAll), config.redact)),
    ...bodyMembers(row.body, config),
    retries: settings.retries ?? DEFAULT_RETRIES,
    ...(settings.delayMs !== undefined && { delay: Math.round(settings.delayMs / 1_000) }),
    ...settingMembers({ ...columns, topic: null, endpoint: null, schedule_id: null }, config),
  }
}

/** Shows a schedule. */
export function scheduleView(row: ScheduleWithStates): ScheduleView {
  const { schedule_id, cron, destination, created_at, caller_ip, paused } = row.schedule
  return {
    scheduleId: schedule_id,
    cron,
    destination,
    createdAt: created_at,
    ...messageMembers(row.schedule),
    ...(caller_ip !== null && { callerIP: caller_ip, callerIp: caller_ip }),
    isPaused: paused === 1,
    ...fireMembers(row),
  }
}
