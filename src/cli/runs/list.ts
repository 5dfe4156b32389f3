import { whole } from '../../contract/words/figures.js'
import { RUN_WORDS, WAIT_WORDS } from '../../contract/words/states.js'
import {
  MAX_SORTED,
  RUN_SORTS,
  type RunSort,
  type SortDirection,
  usualDirection,
} from '../../contract/workflow/run-order.js'
import type { RUN_STATES } from '../../contract/workflow/run-states.js'
import { listRuns } from '../../contract/workflow/runs.js'
import { foundText, pageFlags } from '../queue/filters.js'
import { remote } from '../remote/remote.js'
import { given, instant, oneOf, stateNamed, wordsOf } from '../remote/values.js'
import { duration, moment } from '../terminal/figures.js'
import { type Column, renderTable, stateColumn } from '../terminal/table.js'
import { type RunFilterOptions, runFilterFlags, runFilters, type SeenRun } from './find.js'

interface ListOptions extends RunFilterOptions {
  readonly state?: (typeof RUN_STATES)[number]
  readonly paused?: true
  readonly search?: string
  readonly endedFrom?: number
  readonly endedTo?: number
  readonly sort?: RunSort
  readonly reverse?: true
  readonly count: number
  readonly cursor?: string
}

const MOST = 100

/** `homeport runs list`. */
export const listCommand = remote<ListOptions>({
  name: 'list',
  summary: 'list workflow runs, newest first unless sorted otherwise',
  flags: (command) => {
    runFilterFlags(command, { url: 'of exactly this URL', from: 'created at or after', to: 'created at or before' })
    command.option('--state <state>', wordsOf(RUN_WORDS), stateNamed(RUN_WORDS)).option('--paused', 'only paused runs')
    command.option('--search <text>', 'whose id, URL, label or error contains this text')
    command
      .option('--ended-from <moment>', 'ended at or after', instant)
      .option('--ended-to <moment>', 'ended at or before', instant)
    command
      .option('--sort <what>', `sort by ${RUN_SORTS.join(', ')}`, oneOf(RUN_SORTS))
      .option(
        '--reverse',
        'in the other direction: the oldest, the first to end or the shortest first; texts from Z to A',
      )
    return pageFlags(command, 20)
  },
  examples: ['homeport runs list --state failed --from 1d', 'homeport runs list --sort duration --from 1d'],
  run: async ({ api, io, show }, options) => {
    const { state, paused, count, cursor, search, endedFrom: endedFromDate, endedTo: endedToDate } = options
    const own = given({
      state: state && [state],
      paused,
      cursor,
      search,
      endedFromDate,
      endedToDate,
      ...orderOf(options),
    })
    const query = { ...runFilters(options), ...own }
    const page = await api.call(listRuns, { query: { ...query, count: Math.min(count, MOST), trimBody: 0 } })
    show(page, () => {
      const columns = options.sort === 'ended' ? WITH_END : COLUMNS
      return foundText('runs', page, page.runs, () => renderTable(io, columns, page.runs)) + sortedText(page)
    })
  },
})

function orderOf({ sort, reverse }: ListOptions): { sort?: RunSort; direction?: SortDirection } {
  if (reverse !== true) return given({ sort })
  return { ...given({ sort }), direction: usualDirection(sort ?? 'created') === 'asc' ? 'desc' : 'asc' }
}

/** The line below a list that does not contain all runs, because there were too many to sort. */
function sortedText({ sortedFrom }: { sortedFrom?: number }): string {
  if (sortedFrom === undefined) return ''
  const since = `the newest ${whole(MAX_SORTED)}, created since ${moment(sortedFrom)}`
  return `Sorted runs: ${since}. The older ones: --to ${sortedFrom - 1}\n`
}

const COLUMNS: readonly Column<SeenRun>[] = [
  { title: 'RUN', value: (one) => one.workflowRunId },
  stateColumn((one) => RUN_WORDS[one.workflowState]),
  { isExtra: true, title: 'CREATED', value: (one) => moment(one.workflowRunCreatedAt) },
  { isExtra: true, title: 'TOOK', value: took },
  { isExtra: true, title: 'LABELS', cuts: true, value: (one) => one.labels?.join(' ') },
  { title: 'URL', cuts: true, value: (one) => one.workflowUrl },
  { title: 'WAITS', cuts: true, value: (one) => waitOf(one) },
]

const WITH_END: readonly Column<SeenRun>[] = COLUMNS.toSpliced(3, 0, {
  title: 'ENDED',
  value: ({ workflowRunCompletedAt: endMs }) => (endMs === undefined ? undefined : moment(endMs)),
})

function waitOf({ because: [first] = [] }: SeenRun): string | undefined {
  return first && WAIT_WORDS[first.kind].word
}

/** How long a run took, or has been active. */
function took({ workflowRunCreatedAt, workflowRunCompletedAt }: SeenRun): string {
  return duration(Math.max(0, (workflowRunCompletedAt ?? Date.now()) - workflowRunCreatedAt))
}
