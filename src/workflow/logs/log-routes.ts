import type { Static } from 'typebox'
import { type Clock, mapInSlices } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MAX_FILTER_VALUES } from '../../contract/request-limits.js'
import { searchText } from '../../contract/search.js'
import { type SortDirection, usualDirection } from '../../contract/workflow/run-order.js'
import { RUN_STATES } from '../../contract/workflow/run-states.js'
import {
  listRunEvents,
  listRunMessageLogs,
  listRuns,
  type RunEvent,
  type RunLog,
} from '../../contract/workflow/runs.js'
import { type Route, route } from '../../http/index.js'
import { checkUnit, type Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { RunState } from '../../store/schema/runs.js'
import type { InFlightDeliveries } from '../runs/in-flight.js'
import type { RunNodes } from '../runs/run-nodes.js'
import type { RunLogPage } from '../transactions/runs-logs.js'
import * as runsLogs from '../transactions/runs-logs.js'
import type { RunIdentity, RunLogArgs, RunLogFilter } from '../transactions/runs-walk.js'
import { type LogView, runLogs } from './log-runs.js'
import { sortedPage } from './sorted-page.js'

/** Collaborators of the log routes. */
export interface LogDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'flowHold'>
  readonly clock: Clock
  readonly inFlight: InFlightDeliveries
  readonly nodes: Pick<RunNodes, 'waits'>
}

const DEFAULT_COUNT = 10

type LogQuery = Static<NonNullable<(typeof listRuns)['query']>>

/** Routes of run logs: grouped by run under both of their names, and as flat events. */
export function logRoutes(deps: LogDeps): Route[] {
  return [
    route(listRuns, ({ query, caller }) => page(deps, caller.accountId, query)),
    route(listRunEvents, async ({ query, caller }) => {
      const found = await page(deps, caller.accountId, query)
      return query.groupBy === undefined ? { ...found, events: await flatEvents(found.runs) } : found
    }),
    route(listRunMessageLogs, async ({ query, caller }) => {
      const { runs, ...rest } = await page(deps, caller.accountId, query)
      return { ...rest, events: await flatEvents(runs) }
    }),
  ]
}

async function page(deps: LogDeps, accountId: string, query: LogQuery) {
  const { page, ...rest } = await readPage(deps, accountId, query)
  // Built from the fields that the schema declares.
  const runs = (await runLogs(page, await viewOf(deps, accountId, query, page))) as Static<typeof RunLog>[]
  return { runs, ...rest }
}

/** A page in the requested order, with the cursor of the next page. */
async function readPage({ store, clock }: LogDeps, accountId: string, query: LogQuery) {
  const { sort = 'created', direction = usualDirection(sort), count: limit = DEFAULT_COUNT } = query
  const asked = { accountId, filter: filterOf(query), direction, limit, now: clock.now() }
  if (sort !== 'created') {
    const { cursor, sortedFrom, ...page } = await sortedPage(store, {
      ...asked,
      sort,
      cursor: query.cursor || undefined,
    })
    return { page, ...(cursor !== undefined && { cursor }), ...(sortedFrom !== undefined && { sortedFrom }) }
  }
  const page = await searched(store, { ...asked, ...restAfter(placeOf(query.cursor), direction) })
  return { page, ...cursorAfter(page) }
}

async function viewOf(
  { queue, clock, inFlight, nodes }: LogDeps,
  accountId: string,
  query: LogQuery,
  { pending }: RunLogPage,
): Promise<LogView> {
  const flowKeys = new Set(pending.flatMap(({ flow_key }) => flow_key ?? []))
  const seqs = pending.map(({ seq }) => seq)
  const elsewhere = await nodes.waits({ accountId, seqs, flowKeys: [...flowKeys] })
  return {
    trimTo: query.trimBody ?? Number.MAX_SAFE_INTEGER,
    now: clock.now(),
    inFlightSince: (seq: number) => inFlight.since(seq) ?? elsewhere.since.get(seq),
    holdOf: (flowKey: string) => queue.flowHold(accountId, flowKey) ?? elsewhere.holds.get(flowKey),
  }
}

/** The runs after a place in the order of creation. */
const restAfter = (seq: number | undefined, direction: SortDirection): { before: number; least?: number } =>
  direction === 'desc'
    ? { before: seq ?? Number.MAX_SAFE_INTEGER }
    : { before: Number.MAX_SAFE_INTEGER, least: (seq ?? 0) + 1 }

/** Maximum reads of one request until it finds a run. */
const MAX_READS = 4

/** Reads pages until one has runs, up to a limit. Then the page is empty and has a cursor. */
async function searched(store: Store, args: RunLogArgs): Promise<RunLogPage> {
  let found = await store.run(runsLogs.logPage, args)
  for (let reads = 1; found.runs.length === 0 && found.searchedTo !== undefined && reads < MAX_READS; reads++) {
    const rest = restAfter(found.searchedTo.seq, args.direction ?? 'desc')
    found = await store.run(runsLogs.logPage, { ...args, ...rest })
  }
  return found
}

function filterOf(query: LogQuery): RunLogFilter {
  const { workflowCreatedAt: exactly, messageId, paused, workflowRuns, fromDate, toDate } = query
  checkUnit('fromDate', fromDate)
  checkUnit('toDate', toDate)
  checkUnit('workflowCreatedAt', exactly)
  const { endedFromDate: endedFrom, endedToDate: endedTo, minDuration: minDurationMs } = query
  checkUnit('endedFromDate', endedFrom)
  checkUnit('endedToDate', endedTo)
  const from = exactly ?? fromDate
  const to = exactly ?? toDate
  return {
    ...list('runIds', query.workflowRunId),
    ...(workflowRuns && { identities: commaSeparated(workflowRuns).map(parseIdentity) }),
    ...(query.workflowUrl && { urls: limited(query.workflowUrl.flatMap(urlsOf)) }),
    ...list('labels', query.label),
    ...list('hosts', query.host),
    ...list('paths', query.path),
    ...list('callerIps', query.callerIp),
    ...list('flowKeys', query.flowControlKey),
    ...(query.state && { states: commaSeparated(query.state).map(runStateOf) }),
    ...(paused !== undefined && { [paused ? 'paused' : 'unpaused']: true as const }),
    ...(messageId !== undefined && { messageId }),
    ...(query.search !== undefined && { search: searchText(query.search) }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(endedFrom !== undefined && { endedFrom }),
    ...(endedTo !== undefined && { endedTo }),
    ...(minDurationMs !== undefined && { minDurationMs }),
  }
}

function list<Name extends string>(name: Name, values: readonly string[] | undefined): { [K in Name]?: string[] } {
  // An absent filter must not be a member.
  return (values ? { [name]: commaSeparated(values) } : {}) as { [K in Name]?: string[] }
}

function commaSeparated(values: readonly string[]): string[] {
  return limited(values.flatMap((value) => value.split(',', MAX_FILTER_VALUES + 1))).filter((value) => value !== '')
}

/** Limits the values of a filter: each run is compared with all of them. */
function limited(values: string[]): string[] {
  if (values.length <= MAX_FILTER_VALUES) return values
  const problem = `A filter has more than ${MAX_FILTER_VALUES} values. Send several requests with fewer in each.`
  throw new HomeportError('invalid_request', { problem })
}

/** URLs may contain commas: only a comma before another URL separates. */
const urlsOf = (text: string): string[] => text.split(/,(?=https?:\/\/)/i, MAX_FILTER_VALUES + 1)

/** Parses a run id with the time of creation, such as `wfr_order-17@1795311039040` (reference workflow 4.14). */
function parseIdentity(text: string): RunIdentity {
  const [, runId, createdAt] = /^(.+)@(\d{1,15})$/.exec(text) ?? []
  if (runId !== undefined && createdAt !== undefined) return { runId, createdAt: Number(createdAt) }
  throw new HomeportError('invalid_request', {
    problem: `workflowRuns holds ${JSON.stringify(text.slice(0, 80))}; send ids with times of creation in Unix milliseconds, such as wfr_order-17@1795311039040.`,
  })
}

function runStateOf(text: string): RunState {
  const state = RUN_STATES.find((known) => known === text)
  if (state) return state
  throw new HomeportError('invalid_request', {
    problem: `state must be one of ${RUN_STATES.join(', ')}; found ${JSON.stringify(text.slice(0, 80))}.`,
  })
}

/**
 * Parses a cursor of the order of creation: the `runs.seq` after which the page begins; `undefined` for the first page.
 * @throws HomeportError `invalid_request` for text that is not a cursor.
 */
function placeOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined || cursor === '') return undefined
  const seq = /^\d{1,15}-(\d{1,15})$/.exec(cursor)?.[1]
  if (seq !== undefined) return Number(seq)
  throw new HomeportError('invalid_request', {
    problem: `cursor is ${JSON.stringify(cursor.slice(0, 80))}; send the cursor of the previous page, or none for the first page.`,
  })
}

/** The cursor of the next page; absent after the last page, which tells clients that it is the last. */
function cursorAfter({ runs, more, searchedTo }: RunLogPage): { cursor?: string; searchedTo?: number } {
  if (searchedTo !== undefined) return { cursor: `${searchedTo.at}-${searchedTo.seq}`, searchedTo: searchedTo.at }
  const last = runs.at(-1)
  return last && more ? { cursor: `${last.created_at}-${last.seq}` } : {}
}

type Log = Static<typeof RunLog>
type Step = Log['steps'][number]['steps'][number]

/** An event in the life of a run. */
type FlatEvent = Static<typeof RunEvent>

/** The events of runs, run by run in the given order, newest first within a run (reference workflow 4.14). */
async function flatEvents(runs: readonly Log[]): Promise<FlatEvent[]> {
  const events: FlatEvent[][] = []
  for (const run of runs) events.push((await eventsOf(run)).sort((a, b) => b.time - a.time))
  return events.flat()
}

async function eventsOf(run: Log): Promise<FlatEvent[]> {
  const { workflowRunId, workflowUrl, workflowRunCreatedAt: workflowCreatedAt, workflowRunCompletedAt } = run
  const name = { workflowRunId, workflowUrl, workflowCreatedAt }
  const began: FlatEvent = { ...name, time: workflowCreatedAt, state: 'RUN_STARTED' }
  const all = run.steps.flatMap(({ type, steps }) => steps.map((step) => ({ type, step })))
  const steps = (await mapInSlices(all, ({ type, step }) => stepEvents(step, type, run))).flat()
  const ended: FlatEvent[] =
    workflowRunCompletedAt === undefined ? [] : [{ ...name, time: workflowRunCompletedAt, state: run.workflowState }]
  // The sort is stable, and many events share a millisecond: reversed here, the end of the run comes first.
  return [began, ...steps.map((event) => ({ ...name, ...event })), ...ended].reverse()
}

type StepEvent = Omit<FlatEvent, 'workflowRunId' | 'workflowUrl' | 'workflowCreatedAt'>

function stepEvents(step: Step, group: string, run: Log): StepEvent[] {
  const { errors = [], messageId, nextDeliveryTime, ...stepInfo } = step
  const of = messageId === undefined ? {} : { messageId }
  const failures = errors.map(
    ({ time, status, error }): StepEvent => ({
      ...of,
      time,
      state: 'STEP_RETRY',
      responseStatus: status,
      ...(error !== undefined && { error }),
      ...(nextDeliveryTime !== undefined && { nextDeliveryTime }),
    }),
  )
  const time = step.createdAt ?? run.workflowRunCompletedAt ?? run.workflowRunCreatedAt
  // A pending delivery has no time of its own: its failed attempts are its events.
  const own: StepEvent[] =
    group === 'next' && errors.length > 0 ? [] : [{ ...of, time, state: eventState(step), stepInfo }]
  return [...own, ...failures]
}

/** Active waits and invocations have states of their own. */
function eventState(step: Step): FlatEvent['state'] {
  if (step.state === 'STEP_PROGRESS' && step.waitEventId !== undefined) return 'WAITER_ADDED'
  if (step.state === 'STEP_PROGRESS' && step.invokedWorkflowRunId !== undefined) return 'INVOKED'
  return step.state ?? 'STEP_PROGRESS'
}
