import type { Static } from 'typebox'
import { HomeportError } from '../../contract/errors/errors.js'
import { listRuns, type RunLog } from '../../contract/workflow/runs.js'
import type { Api } from '../remote/api.js'

/** A run as its log shows it. */
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
  throw new HomeportError('cli_not_found', { problem })
}
