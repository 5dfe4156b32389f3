import type { TargetPolicy } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { forwardedHeaders, isOwnSetting } from '../headers.js'
import { groupNameOf, parseDestination, refuseForbidden, refuseForbiddenCallbacks } from '../publish/destination.js'
import { queueOf } from '../publish/draft.js'
import { refuseSetting } from '../publish/setting-values.js'
import { NAME, readSettings, refuseWithoutKey, type SettingLimits } from '../publish/settings.js'
import type { NewSchedule, ScheduleRow } from '../transactions/schedules.js'
import type { PublishItem } from '../types.js'
import { type CronTimes, parseCron } from './cron.js'

/** Settings of the schedule itself, not of its messages. */
const OWN = new Set(['upstash-cron', 'upstash-schedule-id', 'upstash-queue-name'])

/** What drafting a schedule needs besides the item. */
export interface Scheduling {
  readonly accountId: string
  readonly callerIp: string
  readonly now: number
  readonly limits: SettingLimits
  readonly targets: TargetPolicy
  /** Id of the schedule if the request names none. */
  readonly freshId: string
}

/**
 * Makes a schedule of a publish request with `Upstash-Cron`, validated like its messages.
 * @throws HomeportError with the problem of the request.
 */
export function draftSchedule(
  item: PublishItem,
  { accountId, callerIp, now, limits, targets, freshId }: Scheduling,
): NewSchedule {
  const cron = item.headers['upstash-cron']?.trim() ?? ''
  const nextAt = firstFire(cron, now)
  const headers = messageHeaders(item.headers)
  if (headers['upstash-not-before'] !== undefined)
    refuseSetting('Upstash-Not-Before', headers['upstash-not-before'], 'a schedule has Upstash-Delay instead')
  const settings = readSettings(headers, now, limits)
  if (groupNameOf(item.destination) === undefined) refuseWithoutKey(headers)
  forwardedHeaders(headers, true)
  refuseForbiddenCallbacks(headers, targets)
  checkDestination(item.destination, targets)
  return {
    account_id: accountId,
    schedule_id: scheduleIdOf(item) ?? freshId,
    cron,
    destination: item.destination,
    headers: JSON.stringify(headers),
    body: item.body === undefined ? null : new Uint8Array(item.body),
    queue: queueOf(item, settings) ?? null,
    caller_ip: callerIp,
    created_at: now,
    next_at: nextAt,
  }
}

/** The first fire. An expression without any fire is refused. */
function firstFire(cron: string, now: number): number {
  return readCron(cron).next(now) ?? refuseSetting('Upstash-Cron', cron, 'there is no such day; it would never fire')
}

function readCron(cron: string): CronTimes {
  if (cron === '') {
    throw new HomeportError('invalid_request', {
      problem: 'The header Upstash-Cron is missing. Send for example "*/5 * * * *".',
    })
  }
  const times = parseCron(cron)
  if (!('problem' in times)) return times
  return refuseSetting(
    'Upstash-Cron',
    cron,
    `${times.problem}; send five fields such as "CRON_TZ=Europe/Berlin 0 9 * * 1-5"`,
  )
}

function scheduleIdOf({ headers }: PublishItem): string | undefined {
  const id = headers['upstash-schedule-id']?.trim()
  if (id === undefined || id === '') return undefined
  return NAME.test(id) ? id : refuseSetting('Upstash-Schedule-Id', id, 'use letters, digits, - _ and . only')
}

function checkDestination(destination: string, targets: TargetPolicy): void {
  const name = groupNameOf(destination)
  if (name === undefined) refuseForbidden(parseDestination(destination).url, targets)
  else if (!NAME.test(name)) throw new HomeportError('url_group_not_found', { name: name.slice(0, 80) })
}

/** The request headers from which the messages of a schedule are made. */
function messageHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const all = headers['upstash-header-forward']?.trim().toLowerCase() === 'true'
  const isKept = (name: string): boolean =>
    all || name === 'content-type' || name.startsWith('upstash-') || isOwnSetting(name)
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name) && !OWN.has(name)))
}

/** The headers of a stored schedule. Only this file writes the column. */
export const headersOfSchedule = (row: ScheduleRow): Record<string, string> =>
  JSON.parse(row.headers) as Record<string, string>

/** The publish item of a fire. */
export function itemOfSchedule(row: ScheduleRow): PublishItem {
  return {
    destination: row.destination,
    headers: headersOfSchedule(row),
    body: row.body ?? undefined,
    ...(row.queue !== null && { queue: row.queue }),
  }
}

/** The next fire of a stored schedule after a time; `null` if there is none. */
export function nextFire(row: Pick<ScheduleRow, 'cron'>, afterMs: number): number | null {
  const times = parseCron(row.cron)
  return 'problem' in times ? null : (times.next(afterMs) ?? null)
}
