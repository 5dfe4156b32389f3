import { RUN_WORDS, WAIT_WORDS } from '../../contract/words/states.js'
import type { RUN_STATES } from '../../contract/workflow/run-states.js'
import { listRuns } from '../../contract/workflow/runs.js'
import { foundText, pageFlags } from '../queue/filters.js'
import { remote } from '../remote/remote.js'
import { given, instant, stateNamed, wordsOf } from '../remote/values.js'
import { duration, moment } from '../terminal/figures.js'
import { type Column, renderTable, stateColumn } from '../terminal/table.js'
import { type RunFilterOptions, runFilterFlags, runFilters, type SeenRun } from './find.js'

interface ListOptions extends RunFilterOptions {
  readonly state?: (typeof RUN_STATES)[number]
  readonly paused?: true
  readonly search?: string
  readonly endedFrom?: number
  readonly endedTo?: number
  readonly count: number
  readonly cursor?: string
}

const MOST = 100

/** `homeport runs list`. */
export const listCommand = remote<ListOptions>({
  name: 'list',
  summary: 'list workflow runs, newest first',
  flags: (command) => {
    runFilterFlags(command, { url: 'of exactly this URL', from: 'created at or after', to: 'created at or before' })
    command.option('--state <state>', wordsOf(RUN_WORDS), stateNamed(RUN_WORDS)).option('--paused', 'only paused runs')
    command.option('--search <text>', 'whose id, URL, label or error contains this text')
    command
      .option('--ended-from <moment>', 'ended at or after', instant)
      .option('--ended-to <moment>', 'ended at or before', instant)
    return pageFlags(command, 20)
  },
  examples: ['homeport runs list --state failed --from 1d', 'homeport runs list --label hello --json'],
  run: async ({ api, io, show }, options) => {
    const { state, paused, count, cursor, search, endedFrom: endedFromDate, endedTo: endedToDate } = options
    const own = given({ state: state && [state], paused, cursor, search, endedFromDate, endedToDate })
    const query = { ...runFilters(options), ...own }
    const page = await api.call(listRuns, { query: { ...query, count: Math.min(count, MOST), trimBody: 0 } })
    show(page, () => foundText('runs', page, page.runs, () => renderTable(io, COLUMNS, page.runs)))
  },
})

const COLUMNS: readonly Column<SeenRun>[] = [
  { title: 'RUN', value: (one) => one.workflowRunId },
  stateColumn((one) => RUN_WORDS[one.workflowState]),
  { title: 'CREATED', value: (one) => moment(one.workflowRunCreatedAt) },
  { isExtra: true, title: 'TOOK', value: took },
  { isExtra: true, title: 'LABELS', cuts: true, value: (one) => one.labels?.join(' ') },
  { title: 'URL', cuts: true, value: (one) => one.workflowUrl },
  { title: 'WAITS', cuts: true, value: (one) => waitOf(one) },
]

function waitOf({ because: [first] = [] }: SeenRun): string | undefined {
  return first && WAIT_WORDS[first.kind].word
}

function took({ workflowRunCreatedAt, workflowRunCompletedAt }: SeenRun): string | undefined {
  return workflowRunCompletedAt === undefined ? undefined : duration(workflowRunCompletedAt - workflowRunCreatedAt)
}
