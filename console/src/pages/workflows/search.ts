/** The filters of the lists of runs, as URL parameters. */
import type { Static } from 'typebox'
import type { listDeadRuns } from '../../../../src/contract/workflow/dead-letters.js'
import { NOTIFIED_OUTCOMES, type NotifiedOutcome } from '../../../../src/contract/workflow/event-outcomes.js'
import { RUN_STATES } from '../../../../src/contract/workflow/run-states.js'
import type { listRuns } from '../../../../src/contract/workflow/runs.js'
import { given, one, textAt, wholeAt } from '../../lib/search.js'

/** The states of the filter. */
export type RunState = (typeof RUN_STATES)[number]

/** Durations to filter by: runs that took at least as long. */
export const TOOK = [
  { value: '10s', ms: 10_000 },
  { value: '1m', ms: 60_000 },
  { value: '1h', ms: 3_600_000 },
  { value: '1d', ms: 86_400_000 },
] as const

/** A duration to filter by. */
export type Took = (typeof TOOK)[number]['value']

/** The filters of both lists. Times are Unix milliseconds; the range includes both ends. */
export interface CommonSearch {
  readonly url?: string
  readonly label?: string
  readonly caller?: string
  readonly flow?: string
  readonly from?: number
  readonly to?: number
}

/** The URL parameters of the list of runs. */
export interface RunSearch extends CommonSearch {
  readonly state?: RunState
  readonly host?: string
  readonly id?: string
  /** Part of the id, URL, a label or the error. */
  readonly search?: string
  /** When the run ended, Unix milliseconds, both included. */
  readonly endedFrom?: number
  readonly endedTo?: number
  /** The least time that the run took, or has been active. */
  readonly took?: Took
  /** The kind of reason why the run waits. The browser filters by it, because the server cannot. */
  readonly waits?: string
  /** The order of the rows, as in `orderText`. */
  readonly sort?: string
  /** Whether the trigger dialog is open. */
  readonly trigger?: true
}

/** The URL parameters of the list of failed runs. */
export interface DeadRunSearch extends CommonSearch {
  /** A prefix of the run ID. */
  readonly id?: string
  /** Status of the response that failed the run. */
  readonly status?: number
}

function commonOf(search: Record<string, unknown>): CommonSearch {
  return given({
    url: textAt(search, 'url'),
    label: textAt(search, 'label'),
    caller: textAt(search, 'caller'),
    flow: textAt(search, 'flow'),
    from: wholeAt(search, 'from'),
    to: wholeAt(search, 'to'),
  })
}

/** Reads the URL of the list of runs; unknown parameters are dropped. */
export function runSearchOf(search: Record<string, unknown>): RunSearch {
  return {
    ...commonOf(search),
    ...given({
      state: RUN_STATES.find((known) => known === search.state),
      host: textAt(search, 'host'),
      id: textAt(search, 'id'),
      search: textAt(search, 'search'),
      endedFrom: wholeAt(search, 'endedFrom'),
      endedTo: wholeAt(search, 'endedTo'),
      took: TOOK.find(({ value }) => value === search.took)?.value,
      waits: textAt(search, 'waits'),
      sort: textAt(search, 'sort'),
    }),
    ...(search.trigger === true && { trigger: true }),
  }
}

/** Reads the URL of the list of failed runs. */
export function deadRunSearchOf(search: Record<string, unknown>): DeadRunSearch {
  return { ...commonOf(search), ...given({ id: textAt(search, 'id'), status: wholeAt(search, 'status') }) }
}

/** The URL parameters of the list of events. */
export interface EventSearch {
  /** Only this event. */
  readonly event?: string
  /** Of the received events, only those with this outcome. */
  readonly outcome?: NotifiedOutcome
}

/** Reads the URL of the list of events. */
export const eventSearchOf = (search: Record<string, unknown>): EventSearch =>
  given({ event: textAt(search, 'event'), outcome: NOTIFIED_OUTCOMES.find((known) => known === search.outcome) })

/** The filters as parameters of the log of runs. */
export function runQueryOf(search: RunSearch): Static<NonNullable<(typeof listRuns)['query']>> {
  return given({
    state: search.state === undefined ? undefined : [search.state],
    workflowRunId: one(search.id),
    workflowUrl: one(search.url),
    host: one(search.host),
    search: search.search,
    endedFromDate: search.endedFrom,
    endedToDate: search.endedTo,
    minDuration: TOOK.find(({ value }) => value === search.took)?.ms,
    ...commonQuery(search),
  })
}

/** The filters as parameters of the dead letters of runs. */
export function deadRunQueryOf(search: DeadRunSearch): Static<NonNullable<(typeof listDeadRuns)['query']>> {
  return given({
    workflowRunId: one(search.id),
    workflowUrl: one(search.url),
    responseStatus: search.status === undefined ? undefined : [search.status],
    ...commonQuery(search),
  })
}

const commonQuery = ({ label, caller, flow, from, to }: CommonSearch) => ({
  label: one(label),
  callerIp: one(caller),
  flowControlKey: one(flow),
  fromDate: from,
  toDate: to,
})
