import { listDeadRuns, restartDeadRuns, resumeDeadRuns } from '../../contract/workflow/dead-letters.js'
import { carryOut } from '../bulk/action.js'
import { moreBelow, pageFlags, requireSelection } from '../queue/filters.js'
import { deliveryHeaders } from '../queue/settings.js'
import { remote, type Session } from '../remote/remote.js'
import { durationText, given, list, wholeNumber } from '../remote/values.js'
import { counted, moment } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'
import { type DeadOptions, deadFilters, deadFlags, deadLetterOf } from './dead.js'

interface ReviveOptions extends DeadOptions {
  readonly all?: boolean
  readonly retries?: number
  readonly delay?: string
  readonly newLabel?: readonly string[]
  readonly flowKey?: string
  readonly flow?: string
}

/** `homeport runs failed`. */
export const failedCommand = remote<DeadOptions & { count: number; cursor?: string }>({
  name: 'failed',
  summary: 'list failed runs that can be resumed or restarted, oldest failure first',
  flags: (command) => pageFlags(deadFlags(command), 50),
  run: async ({ api, io, show }, options) => {
    const query = { ...deadFilters(options), count: options.count, ...given({ cursor: options.cursor }) }
    const page = await api.call(listDeadRuns, { query })
    type Letter = (typeof page.messages)[number]
    const columns: Column<Letter>[] = [
      { title: 'RUN', value: (one) => one.workflowRunId },
      { title: 'DEAD LETTER', value: (one) => one.dlqId },
      { title: 'ANSWER', value: (one) => one.responseStatus || 'none' },
      { title: 'CALLBACK', value: (one) => one.failureCallbackInfo?.state?.replace('CALLBACK_', '') ?? 'none' },
      { title: 'MADE', value: (one) => moment(one.workflowCreatedAt) },
      { title: 'URL', cuts: true, value: (one) => one.workflowUrl },
    ]
    const text = () => renderTable(io, columns, page.messages) + moreBelow(page.cursor)
    show(page, () => (page.messages.length === 0 ? 'There are no failed runs that fit.\n' : text()))
  },
})

const SUMMARIES = {
  resume: 'take failed runs up again where they stood: a new run of each, its finished steps kept',
  restart: 'take failed runs up again from their start: a new run of each, without steps',
} as const

const KINDS = { resume: 'resumeRuns', restart: 'restartRuns' } as const

type Reviving = keyof typeof SUMMARIES
type Headers = ReturnType<typeof deliveryHeaders>

const reviving = (name: Reviving) =>
  remote<ReviveOptions, [string[]]>({
    name,
    summary: SUMMARIES[name],
    args: [['[ids...]', 'failed runs or their dead letters; else those that the filters select']],
    flags: (command) =>
      deadFlags(command)
        .option('--all', 'every failed run')
        .option('--retries <number>', 'other than the run had', wholeNumber(0))
        .option('--delay <duration>', 'wait so long before the first attempt', durationText)
        .option('--new-label <labels>', 'other than the run had', list)
        .option('--flow-key <key>', 'other than the run had')
        .option('--flow <limits>', 'limits of that key'),
    examples: [`homeport runs ${name} wfr_…`, `homeport runs ${name} --url https://example.com/pay --from 1h`],
    run: async (session, options, ids) => {
      const filters = deadFilters(options)
      requireSelection('failed runs', ids, filters, options.all)
      const { newLabel: label, ...others } = options
      const headers = deliveryHeaders({ ...pickDelivery(others), ...given({ label }) })
      if (ids.length > 0) await reviveNamed(session, name, ids, headers)
      else await carryOut(session, { kind: KINDS[name], selector: filters }, headers)
    },
  })

/** A few that somebody has named: who made which is what they want to know. */
async function reviveNamed({ api, show }: Session, name: Reviving, ids: readonly string[], headers: Headers) {
  const dlqIds = await Promise.all(ids.map((id) => deadLetterOf(api, id)))
  const endpoint = name === 'resume' ? resumeDeadRuns : restartDeadRuns
  const { workflowRuns } = await api.call(endpoint, { query: { dlqIds }, headers })
  show({ workflowRuns }, () => madeOf(name, workflowRuns))
}

const pickDelivery = ({ retries, delay, flowKey, flow }: ReviveOptions) => given({ retries, delay, flowKey, flow })

function madeOf(name: string, runs: readonly { readonly workflowRunId: string }[]): string {
  const lines = runs.map(({ workflowRunId }) => `  ${workflowRunId}\n`).join('')
  return `${name === 'resume' ? 'resumed' : 'restarted'} ${counted(runs.length, 'run')}\n${lines}`
}

/** `homeport runs resume`. */
export const resumeCommand = reviving('resume')
/** `homeport runs restart`. */
export const restartCommand = reviving('restart')
