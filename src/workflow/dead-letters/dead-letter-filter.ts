import { HomeportError } from '../../contract/errors/errors.js'
import { MAX_FILTER_VALUES, MAX_PAGE_IDS, MAX_VALUE_LENGTH } from '../../contract/request-limits.js'
import { FAILURE_STATES } from '../../contract/workflow/dead-letters.js'
import { checkUnit } from '../../queue/index.js'
import type { DeadRunFilter, DeadRunPlace, DeadRunSelector } from '../transactions/runs-dead.js'

const MAX_PAGE = 100
const CURSOR = /^(\d{1,15})-(\d{1,15})$/

/** Filters of a request for dead letters; `http` has validated their types. */
export type DeadQuery = Readonly<Record<string, unknown>>

/**
 * Builds the selector of a request; `undefined` if its filters cannot match a run.
 * @param maxIds limit of the ids in the request.
 */
export function selectorOf(
  accountId: string,
  query: DeadQuery,
  maxIds: number = MAX_PAGE_IDS,
): DeadRunSelector | undefined {
  const filter = filterOf(query, maxIds)
  if (filter === undefined) return undefined
  const after = placeOf(query.cursor)
  const limit = typeof query.count === 'number' ? Math.min(query.count, MAX_PAGE) : MAX_PAGE
  return {
    accountId,
    filter,
    order: query.order === 'latestFirst' ? 'latestFirst' : 'earliestFirst',
    limit: filter.dlqIds ? Math.max(limit, filter.dlqIds.length) : limit,
    ...(after && { after }),
  }
}

/** Selects a single dead letter. */
export function onlyLetter(accountId: string, dlqId: string): DeadRunSelector {
  return { accountId, filter: { dlqIds: [dlqId] }, order: 'earliestFirst', limit: 1 }
}

/** The cursor of the next page; absent after the last page, which tells clients that it is the last. */
export function cursorOf({ next }: { readonly next?: DeadRunPlace }): { cursor?: string } {
  return next ? { cursor: `${next.at}-${next.seq}` } : {}
}

function placeOf(cursor: unknown): DeadRunPlace | undefined {
  if (cursor === undefined || cursor === '') return undefined
  const [, at, seq] = CURSOR.exec(String(cursor)) ?? []
  if (at !== undefined && seq !== undefined) return { at: Number(at), seq: Number(seq) }
  throw new HomeportError('invalid_request', {
    problem: `cursor is ${JSON.stringify(String(cursor).slice(0, 80))}; send the cursor of the previous page, or none for the first page.`,
  })
}

/** Filters for messages only: no run matches them. */
const FOREIGN = ['messageId', 'topicName', 'queueName', 'scheduleId'] as const

/**
 * Ids take precedence over filters; an empty list of ids selects nothing.
 * @throws HomeportError for empty values and lists, and for dates in the wrong order or unit.
 */
function filterOf(query: DeadQuery, maxIds: number): DeadRunFilter | undefined {
  if (query.dlqIds !== undefined) {
    return raw(query.dlqIds).length > 0 ? list('dlqIds', texts('dlqIds', query.dlqIds, maxIds)) : undefined
  }
  if (FOREIGN.some((name) => query[name] !== undefined)) return undefined
  const { responseStatus } = query
  const [fromDate, toDate, createdAt] = ['fromDate', 'toDate', 'workflowCreatedAt'].map((name) => time(query, name))
  if (fromDate !== undefined && toDate !== undefined && fromDate > toDate) {
    refuse(`fromDate is ${fromDate} and toDate is ${toDate}; fromDate must not be the later one.`)
  }
  return {
    ...list('runIdPrefixes', texts('workflowRunId', query.workflowRunId)),
    ...list('urls', urls('workflowUrl', query.workflowUrl ?? query.url)),
    ...list('labels', texts('label', query.label)),
    ...list('callerIps', texts('callerIp', query.callerIp ?? query.callerIP)),
    ...list('flowKeys', texts('flowControlKey', query.flowControlKey)),
    ...list('failureStates', states(query.failureFunctionState ?? query.failureCallbackState)),
    ...list('statuses', values('responseStatus', responseStatus)?.map(Number)),
    ...(createdAt !== undefined && { createdAt }),
    ...(fromDate !== undefined && { from: fromDate }),
    ...(toDate !== undefined && { to: toDate }),
  }
}

function time(query: DeadQuery, name: string): number | undefined {
  const value = query[name]
  if (typeof value !== 'number') return undefined
  checkUnit(name, value)
  return value
}

function list<Name extends string, Value>(name: Name, values: readonly Value[] | undefined) {
  // An absent filter must not be a member.
  return (values ? { [name]: values } : {}) as { [K in Name]?: readonly Value[] }
}

function texts(name: string, value: unknown, max = MAX_FILTER_VALUES): string[] | undefined {
  return values(name, value, (text) => text.split(',', max + 1), max)
}

/** URLs may contain commas: the text is split only if every part starts like a URL. */
function urls(name: string, value: unknown): string[] | undefined {
  return values(name, value, (text) => {
    const parts = text.split(',', MAX_FILTER_VALUES + 1)
    return parts.every((part) => /^https?:\/\//i.test(part)) ? parts : [text]
  })
}

function states(value: unknown) {
  const requested = values('failureFunctionState', value)
  return requested && FAILURE_STATES.filter((state) => requested.includes(state))
}

/** Parses the values of a filter. An empty filter is refused: it must not select everything. */
function values(
  name: string,
  value: unknown,
  split = (text: string) => [text],
  max = MAX_FILTER_VALUES,
): string[] | undefined {
  if (value === undefined) return undefined
  const found = raw(value).flatMap(split)
  if (found.length > max) refuse(`${name} has more than ${max} values. Send several requests with fewer in each.`)
  if (found.some((text) => text.length > MAX_VALUE_LENGTH)) {
    refuse(`${name} has a value of more than ${MAX_VALUE_LENGTH} characters. No id, name or URL is that long.`)
  }
  if (found.length === 0 || found.includes('')) {
    refuse(`The filter ${name} has an empty value. Leave it out, or name what to select.`)
  }
  return found
}

function raw(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).map(String)
}

function refuse(problem: string): never {
  throw new HomeportError('invalid_request', { problem })
}
