import type { Command } from 'commander'
import type { Static } from 'typebox'
import { FAILURE_WORDS } from '../../contract/words/states.js'
import { FAILURE_STATES, listDeadRuns, restartDeadRuns, resumeDeadRuns } from '../../contract/workflow/dead-letters.js'
import { runBulkAction } from '../bulk/follow.js'
import { notFound } from '../errors.js'
import { foundText, pageFlags, requireSelection } from '../queue/filters.js'
import { deliveryHeaders } from '../queue/settings.js'
import type { Api } from '../remote/api.js'
import { type BasicOptions, basicFlags, commonFilters } from '../remote/filters.js'
import { remote, type Session } from '../remote/remote.js'
import { durationText, given, list, wholeNumber } from '../remote/values.js'
import { counted, moment } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'
import { findRun } from './find.js'
import { requireStep, restartFromStep, type StepOptions, stepFlags } from './restart.js'

/** Commands on failed runs. */

type Letter = Static<typeof listDeadRuns.success.body>['messages'][number]

/** The filters of failed runs. */
type DeadOptions = BasicOptions

/** Adds the filter flags of failed runs. */
const deadFlags = (command: Command): Command =>
  basicFlags(command, { url: 'of exactly this URL', from: 'failed at or after', to: 'failed at or before' })

/** The filters as API parameters. */
const deadFilters = ({ url, label, from, to }: DeadOptions) => ({
  ...given({ workflowUrl: url }),
  ...commonFilters(given({ label, from, to })),
})

/** The dead letter of a run id: users know runs, the API takes dead letters. */
async function deadLetterOf(api: Api, id: string): Promise<string> {
  if (/^\d+-\d+$/.test(id)) return id
  const { dlqId, workflowState } = await findRun(api, id)
  if (dlqId !== undefined) return dlqId
  const problem = `The run "${id}" has no dead letter: it is ${workflowState}, or was already resumed or restarted.`
  throw notFound(problem)
}

interface ReviveOptions extends DeadOptions, StepOptions {
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
  examples: ['homeport runs failed --label billing --from 1d'],
  run: async ({ api, io, show }, options) => {
    const query = { ...deadFilters(options), count: options.count, ...given({ cursor: options.cursor }) }
    const page = await api.call(listDeadRuns, { query })
    const columns: Column<Letter>[] = [
      { title: 'RUN', value: (one) => one.workflowRunId },
      { title: 'DEAD LETTER', value: (one) => one.dlqId },
      { isExtra: true, title: 'RESPONSE', value: (one) => one.responseStatus || 'none' },
      { isExtra: true, title: 'FAILURE FUNCTION', value: failureWord },
      { isExtra: true, title: 'CREATED', value: (one) => moment(one.workflowCreatedAt) },
      { title: 'URL', cuts: true, value: (one) => one.workflowUrl },
    ]
    show(page, () => foundText('failed runs', page, page.messages, () => renderTable(io, columns, page.messages)))
  },
})

function failureWord({ failureCallbackInfo }: Letter): string {
  const state = FAILURE_STATES.find((known) => known === failureCallbackInfo?.state)
  return state === undefined ? 'none' : FAILURE_WORDS[state].word
}

const SUMMARIES = {
  resume: 'resume failed runs: starts a new run for each that keeps the finished steps',
  restart: 'restart failed runs from the beginning, or any run from one of its steps: starts new runs',
} as const

const EXAMPLES = {
  resume: ['homeport runs resume wfr_…', 'homeport runs resume --url https://example.com/pay --from 1h'],
  restart: [
    'homeport runs restart wfr_…',
    'homeport runs restart --url https://example.com/pay --from 1h',
    'homeport runs restart wfr_… --from-step 3 --result 2=@result.json',
  ],
} as const

const KINDS = { resume: 'resumeRuns', restart: 'restartRuns' } as const

type Verb = keyof typeof SUMMARIES
type Headers = ReturnType<typeof deliveryHeaders>

const reviveCommand = (name: Verb) =>
  remote<ReviveOptions, [string[]]>({
    name,
    summary: SUMMARIES[name],
    args: [['[ids...]', 'ids of failed runs or dead letters; without ids, those that match the filters']],
    flags: (command) =>
      deadFlags(name === 'restart' ? stepFlags(command) : command)
        .option('--all', 'all failed runs')
        .option('--retries <number>', 'retries of the new run', wholeNumber(0))
        .option('--delay <duration>', 'delay before the first attempt', durationText)
        .option('--new-label <labels>', 'labels of the new run', list)
        .option('--flow-key <key>', 'flow-control key of the new run')
        .option('--flow <limits>', 'limits of the flow-control key'),
    examples: EXAMPLES[name],
    run: async (session, options, ids) => {
      const filters = deadFilters(options)
      const { fromStep } = options
      if (fromStep === undefined) requireStep(options)
      requireSelection('failed runs', ids, filters, options.all)
      const { newLabel: label, ...others } = options
      const headers = deliveryHeaders({ ...pickDelivery(others), ...given({ label }) })
      if (fromStep !== undefined) await restartFromStep(session, { ...options, fromStep }, ids, headers)
      else if (ids.length > 0) await reviveNamed(session, name, ids, headers)
      else await runBulkAction(session, { kind: KINDS[name], selector: filters }, headers)
    },
  })

/** Runs named by id: the result lists each new run. */
async function reviveNamed({ api, show }: Session, name: Verb, ids: readonly string[], headers: Headers) {
  const dlqIds = await Promise.all(ids.map((id) => deadLetterOf(api, id)))
  const endpoint = name === 'resume' ? resumeDeadRuns : restartDeadRuns
  const { workflowRuns } = await api.call(endpoint, { query: { dlqIds }, headers })
  show({ workflowRuns }, () => revivedText(name, workflowRuns))
}

const pickDelivery = ({ retries, delay, flowKey, flow }: ReviveOptions) => given({ retries, delay, flowKey, flow })

function revivedText(name: string, runs: readonly { readonly workflowRunId: string }[]): string {
  const lines = runs.map(({ workflowRunId }) => `  ${workflowRunId}\n`).join('')
  return `${name === 'resume' ? 'resumed' : 'restarted'} ${counted(runs.length, 'run')}\n${lines}`
}

/** `homeport runs resume`. */
export const resumeCommand = reviveCommand('resume')
/** `homeport runs restart`. */
export const restartCommand = reviveCommand('restart')

/** `homeport runs retry-callbacks`. */
export const retryCallbacksCommand = remote<DeadOptions & { all?: boolean }, [string[]]>({
  name: 'retry-callbacks',
  summary: 'call failure functions that have failed for good again',
  args: [['[ids...]', 'ids of failed runs or dead letters; without ids, those that match the filters']],
  flags: (command) => deadFlags(command).option('--all', 'of all failed runs'),
  examples: ['homeport runs retry-callbacks wfr_…', 'homeport runs retry-callbacks --label billing --from 1d'],
  run: async (session, options, ids) => {
    const filters = deadFilters(options)
    requireSelection('failed runs', ids, filters, options.all)
    const dlqIds = await Promise.all(ids.map((id) => deadLetterOf(session.api, id)))
    await runBulkAction(session, { kind: 'retryFailureCallbacks', selector: ids.length > 0 ? { dlqIds } : filters })
  },
})
