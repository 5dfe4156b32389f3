import { type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../dialect.js'

/** Which messages are meant: any of the values of a member, and all members. Empty lists and NULL mean any message. */
export interface MessageFilter {
  readonly messageIds: readonly string[]
  readonly urls: readonly string[]
  readonly hosts: readonly string[]
  readonly paths: readonly string[]
  readonly labels: readonly string[]
  readonly flowKeys: readonly string[]
  readonly callerIps: readonly string[]
  readonly topics: readonly string[]
  readonly queues: readonly string[]
  readonly scheduleIds: readonly string[]
  /** Statuses of the last answer. */
  readonly statuses: readonly number[]
  /** Unix milliseconds, inclusive; which time that is depends on the operation. */
  readonly fromDate: number | null
  readonly toDate: number | null
}

/** A filter that every message passes. */
export const ANY_MESSAGE: MessageFilter = {
  messageIds: [],
  urls: [],
  hosts: [],
  paths: [],
  labels: [],
  flowKeys: [],
  callerIps: [],
  topics: [],
  queues: [],
  scheduleIds: [],
  statuses: [],
  fromDate: null,
  toDate: null,
}

/** A filter as parameters of a query. The text of a query cannot depend on values, so each list has a switch. */
export interface FilterParams {
  messageIds: readonly string[]
  anyMessageId: number
  urls: readonly string[]
  anyUrl: number
  hosts: readonly string[]
  anyHost: number
  paths: readonly string[]
  anyPath: number
  labels: readonly string[]
  anyLabel: number
  flowKeys: readonly string[]
  anyFlowKey: number
  callerIps: readonly string[]
  anyCallerIp: number
  topics: readonly string[]
  anyTopic: number
  queues: readonly string[]
  anyQueue: number
  scheduleIds: readonly string[]
  anyScheduleId: number
  statuses: readonly number[]
  anyStatus: number
  fromDate: number
  toDate: number
}

const isAny = (list: readonly unknown[]): number => (list.length === 0 ? 1 : 0)

/** The parameters that stand for a filter. */
export function filterParams(filter: MessageFilter): FilterParams {
  return {
    messageIds: filter.messageIds,
    anyMessageId: isAny(filter.messageIds),
    urls: filter.urls,
    anyUrl: isAny(filter.urls),
    hosts: filter.hosts,
    anyHost: isAny(filter.hosts),
    paths: filter.paths,
    anyPath: isAny(filter.paths),
    labels: filter.labels.map((label) => `|${label}|`),
    anyLabel: isAny(filter.labels),
    flowKeys: filter.flowKeys,
    anyFlowKey: isAny(filter.flowKeys),
    callerIps: filter.callerIps,
    anyCallerIp: isAny(filter.callerIps),
    topics: filter.topics,
    anyTopic: isAny(filter.topics),
    queues: filter.queues,
    anyQueue: isAny(filter.queues),
    scheduleIds: filter.scheduleIds,
    anyScheduleId: isAny(filter.scheduleIds),
    statuses: filter.statuses,
    anyStatus: isAny(filter.statuses),
    fromDate: filter.fromDate ?? 0,
    toDate: filter.toDate ?? Number.MAX_SAFE_INTEGER,
  }
}

/** The condition of a filter over the table `messages`; dates hold for the column `timeColumn`. */
export function passes(p: FilterParams, d: Dialect, timeColumn: 'created_at' | 'finished_at'): RawBuilder<boolean> {
  const time = sql.ref(timeColumn)
  const all = [
    sql`(${p.anyMessageId} = 1 or ${d.inTexts('message_id', p.messageIds)})`,
    sql`(${p.anyUrl} = 1 or ${d.inTexts('url', p.urls)})`,
    sql`(${p.anyHost} = 1 or ${d.inTexts('host', p.hosts)})`,
    sql`(${p.anyPath} = 1 or ${d.inTexts('path', p.paths)})`,
    sql`(${p.anyLabel} = 1 or ${d.someText(p.labels, (label) => d.contains('labels', label))})`,
    sql`(${p.anyFlowKey} = 1 or ${d.inTexts('flow_key', p.flowKeys)})`,
    sql`(${p.anyCallerIp} = 1 or ${d.inTexts('caller_ip', p.callerIps)})`,
    sql`(${p.anyTopic} = 1 or ${d.inTexts('topic', p.topics)})`,
    sql`(${p.anyQueue} = 1 or ${d.inTexts('queue', p.queues)})`,
    sql`(${p.anyScheduleId} = 1 or ${d.inTexts('schedule_id', p.scheduleIds)})`,
    sql`(${p.anyStatus} = 1 or ${d.inNumbers('response_status', p.statuses)})`,
    sql`(${time} >= ${p.fromDate} and ${time} <= ${p.toDate})`,
  ]
  return sql<boolean>`(${sql.join(all, sql` and `)})`
}
