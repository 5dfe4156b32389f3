import { listRuns, RUN_STATES } from '../../contract/workflow.js'
import { moreBelow, pageFlags } from '../queue/filters.js'
import { remote } from '../remote/remote.js'
import { given, instant, oneOf, repeated } from '../remote/values.js'
import { toneOfState } from '../terminal/colors.js'
import { duration, fromNow } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'
import type { SeenRun } from './find.js'

interface ListOptions {
  readonly state?: (typeof RUN_STATES)[number]
  readonly label?: string[]
  readonly url?: string[]
  readonly host?: string[]
  readonly path?: string[]
  readonly flowKey?: string[]
  readonly callerIp?: string[]
  readonly from?: number
  readonly to?: number
  readonly count: number
  readonly cursor?: string
}

const MOST = 100

/** `homeport runs list`. */
export const listCommand = remote<ListOptions>({
  name: 'list',
  summary: 'list workflow runs, newest first',
  flags: (command) =>
    pageFlags(
      command
        .option('--state <state>', RUN_STATES.join(', '), oneOf(RUN_STATES))
        .option('--label <label>', 'only runs that carry this label; may be repeated', repeated)
        .option('--url <url>', 'only runs of exactly this URL; may be repeated', repeated)
        .option('--host <host>', 'only runs whose URL has this host', repeated)
        .option('--path <path>', 'only runs whose URL has this path', repeated)
        .option('--flow-key <key>', 'only runs of this flow-control key', repeated)
        .option('--caller-ip <address>', 'only runs triggered from this address', repeated)
        .option('--from <moment>', 'made at or after: "1h" ago, a date, or Unix milliseconds', instant)
        .option('--to <moment>', 'made at or before: "1h" ago, a date, or Unix milliseconds', instant),
      20,
    ),
  examples: ['homeport runs list --state RUN_FAILED --from 1d', 'homeport runs list --label hello --json'],
  run: async ({ api, io, show }, options) => {
    const { state, label, url, host, path, flowKey, callerIp, from, to, count, cursor } = options
    const lists = { label, workflowUrl: url, host, path, flowControlKey: flowKey, callerIp }
    const query = given({ ...lists, state: state && [state], fromDate: from, toDate: to, cursor })
    const page = await api.call(listRuns, { query: { ...query, count: Math.min(count, MOST), trimBody: 0 } })
    const text = () => renderTable(io, COLUMNS, page.runs) + moreBelow(page.cursor)
    show(page, () => (page.runs.length === 0 ? 'There are no runs that fit.\n' : text()))
  },
})

const COLUMNS: readonly Column<SeenRun>[] = [
  { title: 'RUN', value: (one) => one.workflowRunId },
  { title: 'STATE', value: (one) => one.workflowState, tone: (one) => toneOfState(one.workflowState) },
  { title: 'MADE', value: (one) => fromNow(one.workflowRunCreatedAt) },
  { title: 'TOOK', value: took },
  { title: 'LABELS', cuts: true, value: (one) => one.labels?.join(' ') },
  { title: 'URL', cuts: true, value: (one) => one.workflowUrl },
  { title: 'BECAUSE', value: (one) => one.because?.[0]?.kind },
]

function took({ workflowRunCreatedAt, workflowRunCompletedAt }: SeenRun): string | undefined {
  return workflowRunCompletedAt === undefined ? undefined : duration(workflowRunCompletedAt - workflowRunCreatedAt)
}
