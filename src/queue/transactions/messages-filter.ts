import { type Expression, type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../../store/dialect.js'

/** Which messages match: for each member any of its values. Empty lists and NULL match every message. */
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
  /** Statuses of the last response. */
  readonly statuses: readonly number[]
  /** At most one text, as `searchText` makes it: the id, URL, labels, queue, group or error contain it. */
  readonly searches: readonly string[]
  /** Unix milliseconds, inclusive. The operation decides which time they apply to. */
  readonly fromDate: number | null
  readonly toDate: number | null
}

/** A filter that every message matches. */
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
  searches: [],
  fromDate: null,
  toDate: null,
}

/** A filter as query parameters. The SQL text cannot depend on values, so each list has a switch. */
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
  searches: readonly string[]
  anySearch: number
  fromDate: number
  toDate: number
}

const isAny = (list: readonly unknown[]): number => (list.length === 0 ? 1 : 0)

/** The query parameters of a filter. */
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
    searches: filter.searches,
    anySearch: isAny(filter.searches),
    fromDate: filter.fromDate ?? 0,
    toDate: filter.toDate ?? Number.MAX_SAFE_INTEGER,
  }
}

type Condition = (p: FilterParams, d: Dialect) => RawBuilder<unknown>

const SEARCHED = ['message_id', 'url', 'labels', 'error', 'queue', 'topic'] as const

function mentionedIn(d: Dialect, text: Expression<string>): RawBuilder<boolean> {
  const columns = SEARCHED.map((column) => d.mentions(column, text))
  const response = sql`(state = 'failed' and ${d.mentions(d.beginning('response_body'), text)})`
  return sql<boolean>`(${sql.join([...columns, response], sql` or `)})`
}

/** Condition of each list of a filter, and the switch that turns it off. */
const LISTS = {
  messageIds: ['anyMessageId', (p, d) => d.inTexts('message_id', p.messageIds)],
  urls: ['anyUrl', (p, d) => d.inTexts('url', p.urls)],
  hosts: ['anyHost', (p, d) => d.inTexts('host', p.hosts)],
  paths: ['anyPath', (p, d) => d.inTexts('path', p.paths)],
  labels: ['anyLabel', (p, d) => d.someText(p.labels, (label) => d.contains('labels', label))],
  flowKeys: ['anyFlowKey', (p, d) => d.inTexts('flow_key', p.flowKeys)],
  callerIps: ['anyCallerIp', (p, d) => d.inTexts('caller_ip', p.callerIps)],
  topics: ['anyTopic', (p, d) => d.inTexts('topic', p.topics)],
  queues: ['anyQueue', (p, d) => d.inTexts('queue', p.queues)],
  scheduleIds: ['anyScheduleId', (p, d) => d.inTexts('schedule_id', p.scheduleIds)],
  statuses: ['anyStatus', (p, d) => d.inNumbers('response_status', p.statuses)],
  searches: ['anySearch', (p, d) => d.someText(p.searches, (text) => mentionedIn(d, text))],
} as const satisfies Partial<Record<keyof FilterParams, readonly [keyof FilterParams, Condition]>>

type ListName = keyof typeof LISTS

/** The non-empty lists of a filter; `any` when there are many. */
export type FilterShape = readonly ListName[] | 'any'

/** Each shape is a prepared query of its own, so their number must be small. */
const MAX_LISTS = 2

/** The shape of a filter. A query that tests only these lists is faster over very many messages. */
export function shapeOf(filter: MessageFilter): FilterShape {
  const nonEmpty = (Object.keys(LISTS) as ListName[]).filter((name) => filter[name].length > 0)
  return nonEmpty.length > MAX_LISTS ? 'any' : nonEmpty
}

type TimeColumn = 'created_at' | 'finished_at'

const inTime = (p: FilterParams, timeColumn: TimeColumn): RawBuilder<unknown> => {
  const time = sql.ref(timeColumn)
  return sql`(${time} >= ${p.fromDate} and ${time} <= ${p.toDate})`
}

const every = (conditions: readonly RawBuilder<unknown>[]): RawBuilder<boolean> =>
  sql<boolean>`(${sql.join(conditions, sql` and `)})`

/** Condition of any filter on the table `messages`. Dates apply to the column `timeColumn`. */
export function passes(p: FilterParams, d: Dialect, timeColumn: TimeColumn): RawBuilder<boolean> {
  const lists = Object.values(LISTS).map(([isAny, condition]) => sql`(${p[isAny]} = 1 or ${condition(p, d)})`)
  return every([...lists, inTime(p, timeColumn)])
}

/** Condition of filters of one shape. */
export function passesShape(
  p: FilterParams,
  d: Dialect,
  timeColumn: TimeColumn,
  shape: FilterShape,
): RawBuilder<boolean> {
  if (shape === 'any') return passes(p, d, timeColumn)
  return every([...shape.map((name) => LISTS[name][1](p, d)), inTime(p, timeColumn)])
}
