/** The filters of the lists of runs, as they stand in the address. */
import type { Static } from 'typebox'
import type { listDeadRuns } from '../../../../src/contract/workflow/dead-letters.js'
import { type listRuns, RUN_STATES } from '../../../../src/contract/workflow/runs.js'
import { given, one, textAt, wholeAt } from '../../lib/search.js'

/** How a run stands. */
export type RunState = (typeof RUN_STATES)[number]

/** Filters that both lists know. Times are Unix milliseconds; both ends belong to the range. */
export interface CommonSearch {
  readonly url?: string
  readonly label?: string
  readonly caller?: string
  readonly flow?: string
  readonly from?: number
  readonly to?: number
}

/** What the list of runs shows. */
export interface RunSearch extends CommonSearch {
  readonly state?: RunState
  readonly host?: string
  readonly id?: string
  /** The form for triggering is open. */
  readonly trigger?: true
}

/** What the list of failed runs shows. */
export interface DeadRunSearch extends CommonSearch {
  /** The beginning of the id of a run. */
  readonly id?: string
  /** Status of the answer that failed the run. */
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

/** Reads the address of the list of runs; what it does not know is left out. */
export function runSearchOf(search: Record<string, unknown>): RunSearch {
  return {
    ...commonOf(search),
    ...given({
      state: RUN_STATES.find((known) => known === search.state),
      host: textAt(search, 'host'),
      id: textAt(search, 'id'),
    }),
    ...(search.trigger === true && { trigger: true }),
  }
}

/** Reads the address of the list of failed runs. */
export function deadRunSearchOf(search: Record<string, unknown>): DeadRunSearch {
  return { ...commonOf(search), ...given({ id: textAt(search, 'id'), status: wholeAt(search, 'status') }) }
}

/** The same filters as the logs of runs take them. */
export function runQueryOf(search: RunSearch): Static<NonNullable<(typeof listRuns)['query']>> {
  return given({
    state: search.state === undefined ? undefined : [search.state],
    workflowRunId: one(search.id),
    workflowUrl: one(search.url),
    host: one(search.host),
    ...commonQuery(search),
  })
}

/** The same filters as the dead letters of runs take them. */
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
