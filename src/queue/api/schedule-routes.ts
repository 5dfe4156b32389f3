import type { Static } from 'typebox'
import { newId } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
} from '../../contract/queue/schedules.js'
import { type Route, route } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { MessageState } from '../../store/schema/messages.js'
import { batchesOf } from '../batches.js'
import { forwardedHeaders } from '../headers.js'
import type { KeyRule } from '../key-rule.js'
import { configOf, DEFAULT_RETRIES, labelColumn, withRule } from '../publish/draft.js'
import { redactionForUrl } from '../publish/provider-secrets.js'
import { itemOfRequest } from '../publish/request.js'
import { AS_ACCEPTED, readSettings } from '../publish/settings.js'
import { draftSchedule, headersOfSchedule, nextFire } from '../schedules/schedule.js'
import type { ScheduleRow, ScheduleWithStates } from '../transactions/schedules.js'
import * as schedules from '../transactions/schedules.js'
import type { ApiDeps } from './deps.js'
import { longList, PAGE } from './long-list.js'
import { bodyMembers, mutable, redactHeaders, settingMembers, turnFor } from './message-view.js'

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

/** Last and next fire. */
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

/** The settings of a schedule's messages. */
function messageMembers(row: ScheduleRow) {
  const headers = headersOfSchedule(row)
  const settings = readSettings(headers, row.created_at, AS_ACCEPTED)
  const config = withRule(configOf(settings, redactionForUrl(row.destination, settings.redact)), settings.rule)
  const labels = labelColumn(settings.labels)
  const columns = { labels, flow_key: settings.flowKey ?? null, queue: row.queue }
  return {
    method: settings.method ?? 'POST',
    header: mutable(redactHeaders(forwardedHeaders(headers, settings.forwardAll), config.redact)),
    ...bodyMembers(row.body, config),
    retries: settings.retries ?? DEFAULT_RETRIES,
    ...(settings.delayMs !== undefined && { delay: Math.round(settings.delayMs / 1_000) }),
    ...settingMembers({ ...columns, topic: null, endpoint: null, schedule_id: null }, config),
    ...ruleMembers(settings.rule),
  }
}

/** The members of a rule except its key. */
function ruleMembers(rule: KeyRule | undefined): Partial<ScheduleView> {
  if (rule === undefined) return {}
  if (rule.kind === 'singleton') return { singletonMode: rule.mode }
  const { delayMs, maxDelayMs } = rule
  return {
    debounceDelay: delayMs / 1_000,
    ...(maxDelayMs !== undefined && { debounceMaxDelay: maxDelayMs / 1_000 }),
  }
}

/** The wire form of a schedule. */
function scheduleView(row: ScheduleWithStates): ScheduleView {
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

/**
 * All schedules of an account, oldest first. The set is fixed at the beginning; each schedule, which may hold megabytes, is
 * shown as it is when its page is read.
 */
async function* allSchedules(store: Store, accountId: string): AsyncGenerator<ScheduleView[]> {
  for (const page of batchesOf(await store.run(schedules.list, { accountId }), PAGE)) {
    const scheduleIds = page.map((one) => one.schedule_id)
    yield (await store.run(schedules.some, { accountId, scheduleIds })).map((row) => scheduleView(row))
  }
}

const ACTION = /^([A-Za-z0-9._-]+)\/(pause|resume)$/

/** Pauses or resumes a schedule. If the schedule is replaced meanwhile, it is read again to compute its next fire. */
async function setPaused(deps: ApiDeps, accountId: string, scheduleId: string, paused: 0 | 1) {
  const { store, clock, schedulesChanged } = deps
  for (let done = false; !done; ) {
    const found = await store.run(schedules.get, { accountId, scheduleId })
    if (!found) throw new HomeportError('schedule_not_found', { scheduleId })
    const { cron } = found.schedule
    const nextAt = paused === 1 ? null : nextFire(found.schedule, clock.now())
    done = await store.run(schedules.setPaused, { accountId, scheduleId, cron, paused, nextAt })
  }
  schedulesChanged()
  return {}
}

/** Schedules. */
export function scheduleRoutes(deps: ApiDeps): Route[] {
  const { store, clock, limits, targets, schedulesChanged } = deps
  return [
    route(createSchedule, async ({ caller, ip, params, headers, body }) => {
      const { accountId } = caller
      const [, id, action] = ACTION.exec(params.destination) ?? []
      if (id !== undefined) return setPaused(deps, accountId, id, action === 'pause' ? 1 : 0)
      const now = clock.now()
      const item = itemOfRequest({ rest: params.destination, headers, body })
      const schedule = draftSchedule(item, {
        accountId,
        callerIp: ip,
        now,
        limits,
        targets,
        freshId: newId('scd_', now),
      })
      await store.run(schedules.put, { ...schedule, most: deps.accountSchedules })
      schedulesChanged()
      return { scheduleId: schedule.schedule_id }
    }),
    route(listSchedules, ({ caller: { accountId } }) => longList(clock, allSchedules(store, accountId))),
    route(getSchedule, async ({ caller: { accountId }, params: { scheduleId } }) => {
      const row = await store.run(schedules.get, { accountId, scheduleId })
      if (!row) throw new HomeportError('schedule_not_found', { scheduleId })
      await turnFor(row.schedule.body)
      return scheduleView(row)
    }),
    route(deleteSchedule, async ({ caller: { accountId }, params: { scheduleId } }) => {
      const removed = await store.run(schedules.remove, { accountId, scheduleId })
      if (removed === 0) throw new HomeportError('schedule_not_found', { scheduleId })
      return {}
    }),
    route(pauseSchedule, ({ caller, params }) => setPaused(deps, caller.accountId, params.scheduleId, 1)),
    route(resumeSchedule, ({ caller, params }) => setPaused(deps, caller.accountId, params.scheduleId, 0)),
  ]
}
