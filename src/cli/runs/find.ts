import type { Command } from 'commander'
import type { Static } from 'typebox'
import { listRuns, type RunLog } from '../../contract/workflow/runs.js'
import { notFound } from '../errors.js'
import type { Api } from '../remote/api.js'
import {
  type BasicOptions,
  type BasicWords,
  basicFlags,
  type CallerOptions,
  callerFlags,
  commonFilters,
  type PlaceOptions,
  placeFlags,
} from '../remote/filters.js'
import { given } from '../remote/values.js'

/** The filters of runs, for listing and cancelling. A run must match all filters. */

/** The filter options of runs. */
export interface RunFilterOptions extends BasicOptions, CallerOptions, PlaceOptions {}

/** Adds the filter flags of runs. */
export const runFilterFlags = (command: Command, words: BasicWords): Command =>
  callerFlags(placeFlags(basicFlags(command, words)), 'triggered')

/** The filters as API parameters. */
export const runFilters = (options: RunFilterOptions) => {
  const { url, host, path } = options
  return { ...given({ workflowUrl: url, host, path }), ...commonFilters(options) }
}

/** A run in the run log. */
export type SeenRun = Static<typeof RunLog>

/**
 * The log of one run.
 * @throws HomeportError `cli_not_found`.
 */
export async function findRun(api: Api, runId: string): Promise<SeenRun> {
  const { runs } = await api.call(listRuns, { query: { workflowRunId: [runId] } })
  const [run] = runs
  if (run) return run
  const problem = `There is no workflow run "${runId}". See: homeport runs list.`
  throw notFound(problem)
}

/** The run and step that a restarted run comes from, in words. */
export const originText = ({ workflowRunId, stepId }: NonNullable<SeenRun['origin']>): string =>
  `${workflowRunId}, step ${stepId}`
