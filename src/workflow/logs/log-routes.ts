import type { Static } from 'typebox'
import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MOST_FILTER_VALUES } from '../../contract/request-limits.js'
import { listRunEvents, listRunMessageLogs, listRuns, RUN_STATES, type RunLog } from '../../contract/workflow/runs.js'
import { type Route, route } from '../../http/index.js'
import { checkUnit, type Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { RunState } from '../../store/schema/runs.js'
import type { Flights } from '../runs/flights.js'
import * as runsLogs from '../transactions/runs-logs.js'
import type { RunLogFilter, RunMade } from '../transactions/runs-matching.js'
import { flatEvents } from './flat-events.js'
import { runLogs } from './log-runs.js'
import { cursorAfter, placeOf } from './run-cursor.js'

/** What reading run logs takes. */
export interface LogDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'flowHold'>
  readonly clock: Clock
  readonly flights: Flights
}

const DEFAULT_COUNT = 10

type LogQuery = Static<NonNullable<(typeof listRuns)['query']>>

/** Run logs under both of their names, and flat. */
export function logRoutes(deps: LogDeps): Route[] {
  return [
    route(listRuns, ({ query, caller }) => page(deps, caller.accountId, query)),
    route(listRunEvents, async ({ query, caller }) => {
      const found = await page(deps, caller.accountId, query)
      return query.groupBy === undefined ? { ...found, events: flatEvents(found.runs) } : found
    }),
    route(listRunMessageLogs, async ({ query, caller }) => {
      const { runs, ...rest } = await page(deps, caller.accountId, query)
      return { ...rest, events: flatEvents(runs) }
    }),
  ]
}

async function page({ store, queue, clock, flights }: LogDeps, accountId: string, query: LogQuery) {
  const limit = query.count ?? DEFAULT_COUNT
  const before = placeOf(query.cursor)
  const now = clock.now()
  const found = await store.run(runsLogs.logPage, { accountId, filter: filterOf(query), before, limit, now })
  const view = {
    trimTo: query.trimBody ?? Number.MAX_SAFE_INTEGER,
    now,
    inFlightSince: (seq: number) => flights.since(seq),
    holdOf: (flowKey: string) => queue.flowHold(accountId, flowKey),
  }
  const runs = runLogs(found, view)
  // Built from the very fields that the schema declares.
  return { runs: runs as Static<typeof RunLog>[], ...cursorAfter(found) }
}

function filterOf(query: LogQuery): RunLogFilter {
  const { workflowCreatedAt: exactly, messageId, workflowRuns, fromDate, toDate } = query
  checkUnit('fromDate', fromDate)
  checkUnit('toDate', toDate)
  checkUnit('workflowCreatedAt', exactly)
  const from = exactly ?? fromDate
  const to = exactly ?? toDate
  return {
    ...list('runIds', query.workflowRunId),
    ...(workflowRuns && { madeAt: commaSeparated(workflowRuns).map(madeAt) }),
    ...(query.workflowUrl && { urls: few(query.workflowUrl.flatMap(urlsOf)) }),
    ...list('labels', query.label),
    ...list('hosts', query.host),
    ...list('paths', query.path),
    ...list('callerIps', query.callerIp),
    ...list('flowKeys', query.flowControlKey),
    ...(query.state && { states: commaSeparated(query.state).map(stateOf) }),
    ...(messageId !== undefined && { messageId }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  }
}

function list<Name extends string>(name: Name, values: readonly string[] | undefined): { [K in Name]?: string[] } {
  // A filter that is absent must not be a member at all.
  return (values ? { [name]: commaSeparated(values) } : {}) as { [K in Name]?: string[] }
}

function commaSeparated(values: readonly string[]): string[] {
  return few(values.flatMap((value) => value.split(',', MOST_FILTER_VALUES + 1))).filter((value) => value !== '')
}

/** Every run that is looked at is held against each value. */
function few(values: string[]): string[] {
  if (values.length <= MOST_FILTER_VALUES) return values
  const problem = `A filter has more than ${MOST_FILTER_VALUES} values. Send several requests with fewer in each.`
  throw new HomeportError('invalid_request', { problem })
}

/** A URL may itself hold commas: only one before another URL separates. */
const urlsOf = (text: string): string[] => text.split(/,(?=https?:\/\/)/i, MOST_FILTER_VALUES + 1)

/** A run with the time of its creation, such as `wfr_order-17@1795311039040` (reference workflow 4.14). */
function madeAt(text: string): RunMade {
  const [, runId, createdAt] = /^(.+)@(\d{1,15})$/.exec(text) ?? []
  if (runId !== undefined && createdAt !== undefined) return { runId, createdAt: Number(createdAt) }
  throw new HomeportError('invalid_request', {
    problem: `workflowRuns holds ${JSON.stringify(text.slice(0, 80))}; send ids with times of creation in Unix milliseconds, such as wfr_order-17@1795311039040.`,
  })
}

function stateOf(text: string): RunState {
  const state = RUN_STATES.find((known) => known === text)
  if (state) return state
  throw new HomeportError('invalid_request', {
    problem: `state must be one of ${RUN_STATES.join(', ')}; found ${JSON.stringify(text.slice(0, 80))}.`,
  })
}
