import type { Static } from 'typebox'
import { FAILURE_WORDS, RUN_WORDS, STEP_WORDS } from '../../contract/words/states.js'
import type { RunStep } from '../../contract/workflow/runs.js'
import type { Io } from '../io.js'
import { remote } from '../remote/remote.js'
import { duration, moment, momentFromNow, withMoments } from '../terminal/figures.js'
import { type Column, type Fact, renderFacts, renderTable, stateColumn, stateFact } from '../terminal/table.js'
import { findRun, originText, type SeenRun } from './find.js'

type Step = Static<typeof RunStep>

/** A step with the mark of its group. */
interface Row {
  readonly step: Step
  readonly mark: string
}

/** `homeport runs show`. */
export const showCommand = remote({
  name: 'show',
  summary: 'show a workflow run with its steps',
  args: [['<id>', 'id of the run']],
  examples: ['homeport runs show wfr_…', 'homeport runs show wfr_… --json'],
  run: async ({ api, io, show }, _, runId) => {
    const run = await findRun(api, runId)
    show(run, () => `${renderFacts(io, factsOf(run))}\n${stepsTable(io, run)}`)
  },
})

function factsOf(run: SeenRun): Fact[] {
  const { workflowRunCreatedAt: created, workflowRunCompletedAt: ended } = run
  return [
    ['run', run.workflowRunId],
    ['url', run.workflowUrl],
    stateFact(RUN_WORDS[run.workflowState]),
    ['created', momentFromNow(created)],
    ['ended', ended && `${moment(ended)} (took ${duration(ended - created)})`],
    ['labels', run.labels?.join(', ')],
    ['flow control', run.flowControlKey],
    ['restarted from', run.origin && originText(run.origin)],
    ['invoked by', run.invoker?.workflowRunId],
    ['failure function', run.failureFunction?.state && FAILURE_WORDS[run.failureFunction.state].word],
    ['dead letter', run.dlqId],
    ...(run.because ?? []).map(({ text }): Fact => ['because', withMoments(text)]),
    ['response', run.workflowRunResponse],
  ]
}

const COLUMNS: readonly Column<Row>[] = [
  { title: '', value: ({ mark }) => mark },
  { title: 'STEP', cuts: true, value: ({ step }) => step.stepName },
  { title: 'TYPE', value: ({ step }) => step.stepType ?? step.callType },
  stateColumn(({ step }) => STEP_WORDS[step.state ?? 'STEP_PROGRESS']),
  { isExtra: true, title: 'AT', value: ({ step }) => moment(step.createdAt) },
  { isExtra: true, title: 'NEXT', value: ({ step }) => moment(step.nextDeliveryTime ?? step.sleepUntil) },
  { isExtra: true, title: 'TIME', cuts: true, value: ({ step }) => timeText(step) },
  { isExtra: true, title: 'TRIES', value: ({ step }) => step.errors?.length, align: 'right' },
  { title: 'RESULT', cuts: true, value: ({ step }) => resultOf(step) },
]

/** The steps in order. `∥` marks steps of a parallel group, `›` steps that have not ended. */
function stepsTable(io: Io, { steps }: SeenRun): string {
  const rows = steps.flatMap(({ type, steps: inner }) =>
    inner.map((step): Row => ({ step, mark: { sequential: '', parallel: '∥', next: '›' }[type] })),
  )
  return renderTable(io, COLUMNS, rows)
}

/** How long a step took, and its phases, longest first: `1.2s: back-off 1s, endpoint 190ms, overhead 2ms`. */
function timeText({ time }: Step): string | undefined {
  if (!time) return undefined
  const totals = new Map<string, number>()
  for (const { phase, ms } of time.phases) totals.set(phase, (totals.get(phase) ?? 0) + ms)
  const parts = [...totals].toSorted(([, a], [, b]) => b - a)
  const all = duration(parts.reduce((sum, [, ms]) => sum + ms, 0))
  return parts.length === 0 ? all : `${all}: ${parts.map(([phase, ms]) => `${phase} ${duration(ms)}`).join(', ')}`
}

function resultOf({ out, errors }: Step): string | undefined {
  if (out !== undefined) return typeof out === 'string' ? out : JSON.stringify(out)
  return errors?.at(-1)?.error
}
