/** `homeport workflows`: pauses and resumes a workflow: its active runs, and runs that begin later. */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { listPausedWorkflows, pauseWorkflow, resumeWorkflow } from '../../contract/bulk/paused.js'
import { followToEnd } from '../bulk/follow.js'
import { group, remote } from '../remote/remote.js'
import { given } from '../remote/values.js'
import { moment } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'

interface PauseOptions {
  readonly holdClock: boolean
  readonly reason?: string
}

type Paused = Static<typeof listPausedWorkflows.success.body>['workflows'][number]

const URL = ['<url>', 'whole URL of the workflow, as `homeport runs list` shows it'] as const

const COLUMNS: readonly Column<Paused>[] = [
  { title: 'WORKFLOW', cuts: true, value: (one) => one.workflowUrl },
  { title: 'PAUSED', value: (one) => moment(one.paused.at) },
  { title: 'BY', value: (one) => one.paused.by },
  { title: 'CLOCK', value: (one) => one.paused.clock },
  { title: 'REASON', cuts: true, value: (one) => one.paused.reason ?? '' },
]

const listCommand = remote({
  name: 'list',
  summary: 'list paused workflows',
  examples: ['homeport workflows list'],
  run: async ({ api, io, show }) => {
    const { workflows } = await api.call(listPausedWorkflows, {})
    show(workflows, () => renderTable(io, COLUMNS, workflows, 'No workflow is paused.\n'))
  },
})

const pauseCommand = remote<PauseOptions>({
  name: 'pause',
  summary: 'pause a workflow: its runs, and those that begin, wait until `homeport workflows resume`',
  args: [URL],
  flags: (command: Command) =>
    command
      .option('--hold-clock', 'move sleeps and timeouts later by the length of the pause', false)
      .option('--reason <text>', 'why; shown by the runs and in the audit log'),
  examples: ['homeport workflows pause https://example.com/api/order --reason maintenance'],
  run: async (session, { holdClock, reason }, workflowUrl) => {
    const clock = holdClock ? ('hold' as const) : ('keep' as const)
    const { actionId } = await session.api.call(pauseWorkflow, { body: { workflowUrl, clock, ...given({ reason }) } })
    session.say('New runs wait. Pausing the active ones:')
    await followToEnd(session, actionId)
  },
})

const resumeCommand = remote({
  name: 'resume',
  summary: 'resume a paused workflow; runs that were paused alone stay paused',
  args: [URL],
  examples: ['homeport workflows resume https://example.com/api/order'],
  run: async (session, _, workflowUrl) => {
    const { actionId, pausedAt } = await session.api.call(resumeWorkflow, { body: { workflowUrl } })
    if (pausedAt === undefined) session.say('The workflow was not paused.')
    await followToEnd(session, actionId)
  },
})

/** `homeport workflows` with its commands. */
export const workflowsCommand = group('workflows', 'pause and resume workflows', [
  listCommand,
  pauseCommand,
  resumeCommand,
])
