import { pauseRun, unpauseRun } from '../../contract/workflow/pause.js'
import { remote } from '../remote/remote.js'
import { given } from '../remote/values.js'
import { moment } from '../terminal/figures.js'
import { printable } from '../terminal/text.js'

interface PauseOptions {
  readonly holdClock: boolean
  readonly reason?: string
}

/** `homeport runs pause`: holds runs where they stand. */
export const pauseCommand = remote<PauseOptions, [string[]]>({
  name: 'pause',
  summary: 'pause workflow runs: nothing of them is sent until `homeport runs unpause`',
  args: [['<ids...>', 'ids of active runs']],
  flags: (command) =>
    command
      .option('--hold-clock', 'move sleeps and timeouts later by the time that the run was paused', false)
      .option('--reason <text>', 'why; shown by the run and in the audit log'),
  examples: ['homeport runs pause wfr_1 wfr_2 --reason maintenance', 'homeport runs pause wfr_1 --hold-clock'],
  run: async ({ api, show }, { holdClock, reason }, ids) => {
    const body = { ...given({ reason }), clock: holdClock ? ('hold' as const) : ('keep' as const) }
    for (const workflowRunId of ids) {
      const run = await api.call(pauseRun, { params: { workflowRunId }, body })
      show(run, () => `paused since ${moment(run.paused.at)}: ${printable(workflowRunId)}\n`)
    }
  },
})

/** `homeport runs unpause`: lets paused runs go on. `homeport runs resume` is for failed ones. */
export const unpauseCommand = remote<object, [string[]]>({
  name: 'unpause',
  summary: 'let paused workflow runs go on; `homeport runs resume` is for failed runs',
  args: [['<ids...>', 'ids of paused runs']],
  examples: ['homeport runs unpause wfr_1 wfr_2'],
  run: async ({ api, show }, _, ids) => {
    for (const workflowRunId of ids) {
      const run = await api.call(unpauseRun, { params: { workflowRunId } })
      const state = run.pausedAt === undefined ? 'was not paused' : 'goes on'
      show(run, () => `${state}: ${printable(workflowRunId)}\n`)
    }
  },
})
