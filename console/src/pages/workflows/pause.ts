/** Asks how a run or a workflow is paused. */
import type { Static } from 'typebox'
import type { PauseClock } from '../../../../src/contract/bulk/answers.js'
import { listPausedWorkflows, pauseWorkflow } from '../../../../src/contract/bulk/paused.js'
import { pauseRun } from '../../../../src/contract/workflow/pause.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { api } from '../../api/client.js'
import { askClock, type ClockQuestion } from '../../components/clock-question.js'
import { withoutScheme } from '../../lib/format.js'

/** What a pause does to due times. */
export const PAUSE_CLOCKS: ClockQuestion<Static<typeof PauseClock>>['choices'] = [
  {
    value: 'keep',
    label: 'Keep their times',
    description: 'What became due meanwhile is sent at the resume.',
  },
  {
    value: 'hold',
    label: 'Hold the clock',
    description: 'The resume moves them later by the length of the pause.',
  },
]

/** The times that a pause holds or keeps. */
export const PAUSED_TIMES = 'Sleeps, delays, retries and timeouts'

/** Pauses an active run. */
export const askPause = (workflowRunId: string): void =>
  askClock({
    title: 'Pause this run',
    text: 'Nothing more of it is sent until it is resumed. A request in flight ends, and its result is kept.',
    action: 'Pause the run',
    label: PAUSED_TIMES,
    choices: PAUSE_CLOCKS,
    onAnswer: (body) => api(pauseRun, { params: { workflowRunId }, body }),
    done: 'The run was paused.',
    refreshes: [listRuns],
  })

/** Pauses all runs of a workflow, the active ones and those that begin. */
export const askPauseWorkflow = (workflowUrl: string): void =>
  askClock({
    title: 'Pause this workflow',
    text: `The active runs of ${withoutScheme(workflowUrl)} are paused, and every run that begins waits until the workflow is resumed.`,
    action: 'Pause the workflow',
    label: PAUSED_TIMES,
    choices: PAUSE_CLOCKS,
    onAnswer: (body) => api(pauseWorkflow, { body: { workflowUrl, ...body } }),
    refreshes: [listRuns, listPausedWorkflows],
  })
