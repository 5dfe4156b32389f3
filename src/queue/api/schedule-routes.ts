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
import { itemOfRequest } from '../publish/request.js'
import { draftSchedule, nextFire } from '../schedules/schedule.js'
import * as schedules from '../transactions/schedules.js'
import type { ApiDeps } from './deps.js'
import { allSchedules } from './schedule-list.js'
import { scheduleView } from './schedule-view.js'

const ACTION = /^([A-Za-z0-9._-]+)\/(pause|resume)$/

async function setPaused(deps: ApiDeps, accountId: string, scheduleId: string, paused: 0 | 1) {
  const { store, clock, schedulesChanged } = deps
  const found = await store.run(schedules.get, { accountId, scheduleId })
  if (!found) throw new HomeportError('schedule_not_found', { scheduleId })
  const nextAt = paused === 1 ? null : nextFire(found.schedule, clock.now())
  await store.run(schedules.setPaused, { accountId, scheduleId, paused, nextAt })
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
      await store.run(schedules.put, schedule)
      schedulesChanged()
      return { scheduleId: schedule.schedule_id }
    }),
    route(listSchedules, ({ caller: { accountId } }) => allSchedules(store, accountId)),
    route(getSchedule, async ({ caller: { accountId }, params: { scheduleId } }) => {
      const row = await store.run(schedules.get, { accountId, scheduleId })
      if (!row) throw new HomeportError('schedule_not_found', { scheduleId })
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
