import { NEEDLES } from './lists-data.js'

/** A request that is timed. */
export interface ListRequest {
  readonly name: string
  readonly of: 'queue' | 'management'
  readonly path: string
  /** Further pages that are read first, by the cursor; default: none. */
  readonly pages?: number
}

const { rare, label, absent } = NEEDLES
const encoded = (query: Readonly<Record<string, string | number>>): string =>
  Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')

type Queries = Readonly<Record<string, Readonly<Record<string, string | number>>>>

const over = (of: ListRequest['of'], list: string, path: string, fixed: string, queries: Queries): ListRequest[] =>
  Object.entries(queries).map(([name, query]) => ({
    name: `${list}: ${name}`,
    of,
    path: `${path}?${fixed}&${encoded(query)}`,
  }))

/** Pages before a deep one. */
const DEEP = 40
const old = Date.now() - 1.9 * 86_400_000

const RUNS: Queries = {
  'first page': {},
  'state, common': { state: 'RUN_SUCCESS' },
  'state, active': { state: 'RUN_STARTED' },
  'URL, common': { workflowUrl: 'https://host-7.test/jobs/7' },
  'URL, none': { workflowUrl: 'https://none.test/' },
  'host, none': { host: 'none.test' },
  'path, none': { path: '/none' },
  'label, common': { label: 'batch' },
  'label, one old run': { label },
  'label, none': { label: absent },
  'flow-control key, common': { flowControlKey: 'key-3' },
  'flow-control key, none': { flowControlKey: absent },
  'caller, none': { callerIp: '192.0.2.1' },
  'paused, none': { paused: 'true' },
  'id, one': { workflowRunId: 'wfr_order-000001000' },
  'id, none': { workflowRunId: 'wfr_none' },
  'created, old': { toDate: Math.floor(old) },
  'created, between': { fromDate: Math.floor(old - 60_000), toDate: Math.floor(old) },
  'created, none': { toDate: Math.floor(old - 1e9) },
  'ended, old': { endedToDate: Math.floor(old) },
  'lasted, none': { minDuration: 1_000_000_000 },
  'search, common': { search: 'jobs' },
  'search, id': { search: 'order-000001000' },
  'search, one old error': { search: rare },
  'search, none': { search: absent },
  'search, state and label, none': { search: absent, state: 'RUN_FAILED', label: 'batch' },
}

const MESSAGES: Queries = {
  'first page': {},
  'oldest first': { order: 'earliestFirst' },
  'state, common': { state: 'DELIVERED' },
  'state, none': { state: 'CANCEL_REQUESTED', url: 'https://none.test/' },
  'URL, common': { url: 'https://host-7.test/jobs/7' },
  'URL, none': { url: 'https://none.test/' },
  'label, common': { label: 'batch' },
  'label, one old message': { label },
  'label, none': { label: absent },
  'queue, none': { queueName: absent },
  'group, none': { topicName: absent },
  'flow-control key, none': { flowControlKey: absent },
  'schedule, none': { scheduleId: absent },
  'time, old': { toDate: Math.floor(old) },
  'time, between': { fromDate: Math.floor(old - 60_000), toDate: Math.floor(old) },
  'time, none': { toDate: Math.floor(old - 1e9) },
  'search, common': { search: 'jobs' },
  'search, one old error': { search: rare },
  'search, none': { search: absent },
}

const DEAD: Queries = {
  'first page': {},
  'latest first': { order: 'latestFirst' },
  'URL, none': { url: 'https://none.test/' },
  'label, one old': { label },
  'label, none': { label: absent },
  'status, none': { responseStatus: 418 },
  'time, none': { fromDate: Math.floor(Date.now() + 1e8) },
  'time, old, latest first': { toDate: Math.floor(old), order: 'latestFirst' },
}

const one = (of: ListRequest['of'], name: string, path: string): ListRequest => ({ name, of, path })

/** Every list, filter and search that is timed. */
export const REQUESTS: readonly ListRequest[] = [
  ...over('queue', 'runs', '/v2/workflows/logs', 'count=50&trimBody=0&groupBy=workflowRunId', RUNS),
  { ...one('queue', 'runs: deep page', '/v2/workflows/logs?count=50&trimBody=0&groupBy=workflowRunId'), pages: DEEP },
  one('queue', 'runs: as events', '/v2/workflows/events?count=50'),
  ...over('queue', 'messages', '/v2/logs', 'count=500&trimBody=0', MESSAGES),
  { ...one('queue', 'messages: deep page', '/v2/logs?count=500&trimBody=0'), pages: DEEP },
  ...over('queue', 'dead messages', '/v2/dlq', 'count=100', DEAD),
  { ...one('queue', 'dead messages: deep page', '/v2/dlq?count=100'), pages: DEEP },
  ...over('queue', 'dead runs', '/v2/workflows/dlq', 'count=100&trimBody=0', DEAD),
  { ...one('queue', 'dead runs: deep page', '/v2/workflows/dlq?count=100&trimBody=0'), pages: DEEP },
  one('queue', 'events waited for: first page', '/v2/waiters'),
  one('queue', 'events waited for: prefix, none', `/v2/waiters?prefix=${absent}`),
  one('queue', 'events waited for: one event', '/v2/waiters/event-7'),
  one('queue', 'events that came: first page', '/v2/notify'),
  one('queue', 'queues', '/v2/queues'),
  one('queue', 'flow-control keys', '/v2/flowControl'),
  one('queue', 'schedules', '/v2/schedules'),
  one('queue', 'bulk actions', '/v2/workflows/bulkActions'),
  one('management', 'audit log: first page', '/v2/auditlogs?limit=200'),
  { ...one('management', 'audit log: deep page', '/v2/auditlogs?limit=200'), pages: DEEP },
  one('management', 'audit log: search, common', '/v2/auditlogs?limit=200&search=cancel'),
  one('management', 'audit log: search, one old', `/v2/auditlogs?limit=200&search=${rare}`),
  one('management', 'audit log: search, none', `/v2/auditlogs?limit=200&search=${absent}`),
  one('management', 'overview of Home', '/v2/console/overview'),
  one('management', 'activity of Home', '/v2/console/activity'),
  one('management', 'log of the server', '/v2/server/logs?count=100'),
]
