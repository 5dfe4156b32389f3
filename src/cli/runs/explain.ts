import { RUN_WORDS } from '../../contract/words/states.js'
import { remote } from '../remote/remote.js'
import { moment, withMoments } from '../terminal/figures.js'
import { printable } from '../terminal/text.js'
import { findRun, originText, type SeenRun } from './find.js'

/** `homeport runs explain`: why a run waits, one line per branch, or how it has ended. */
export const explainCommand = remote({
  name: 'explain',
  summary: 'explain what a workflow run waits for, or how it ended',
  args: [['<id>', 'id of the run']],
  examples: ['homeport runs explain wfr_…'],
  run: async ({ api, show }, _, runId) => {
    const run = await findRun(api, runId)
    const { because = [] } = run
    const lines = () => [
      ...(run.origin ? [printable(`It was restarted from ${originText(run.origin)}.`)] : []),
      ...(run.workflowState === 'RUN_STARTED'
        ? because.map(({ text }) => printable(withMoments(text)))
        : endingOf(run)),
    ]
    show(because, () =>
      lines()
        .map((line) => `${line}\n`)
        .join(''),
    )
  },
})

/** Describes how a run has ended: what failed, its dead letter, and the state of its failure function. */
export function endingOf(run: SeenRun): string[] {
  const { workflowRunId: id, workflowState: state, canceledBy, replacedBy, dlqId } = run
  return [
    `The run has ended: ${RUN_WORDS[state].word}${state === 'RUN_FAILED' ? failureOf(run) : ''}.`,
    ...(canceledBy
      ? [`The bulk action ${canceledBy.actionId} of ${canceledBy.actor} cancelled it${reason(canceledBy)}.`]
      : []),
    ...(replacedBy ? [`A newer trigger with ${keyOf(run)} replaced it by ${replacedBy.workflowRunId}.`] : []),
    ...failureFunctionText(run),
    ...(dlqId === undefined ? [] : [`It is the dead letter ${dlqId}. Resume it: homeport runs resume ${id}`]),
  ].map(printable)
}

const keyOf = ({ debounceKey, singletonKey }: SeenRun): string =>
  debounceKey === undefined ? `the singleton key ${singletonKey}` : `the debounce key ${debounceKey}`

const reason = (canceledBy: { readonly reason?: string }): string =>
  canceledBy.reason === undefined ? '' : `: ${canceledBy.reason}`

function failureOf({ steps }: SeenRun): string {
  const failed = steps.flatMap((group) => group.steps).findLast(({ state }) => state === 'STEP_FAILED')
  const last = failed?.errors?.at(-1)
  const place = failed?.stepName === undefined ? '' : ` in step "${failed.stepName}"`
  return last ? `${place}${attemptText(last, ': ')}` : place
}

interface Answer {
  readonly status: number
  readonly error: string
}

/** How a sentence about a failed attempt ends. `unanswered` introduces the reason why there was no answer. */
function attemptText({ status, error }: Answer, unanswered: string): string {
  const code = `HTTP ${status}`
  // The sentence around the error has its own full stop.
  const said = error.replace(/\.$/, '')
  if (status === 0) return `${unanswered}${said}`
  return error === code ? `, after ${code}` : `, after ${code}: ${said}`
}

function failureFunctionText({ failureFunction, workflowRunId: id }: SeenRun): string[] {
  if (!failureFunction) return []
  const { url = '', state, errors = [], nextDeliveryTime: next } = failureFunction
  const last = errors.at(-1)
  const after = last ? attemptText(last, '; the last attempt failed: ') : ''
  switch (state) {
    case 'CALLBACK_INPROGRESS':
      return last && next !== undefined
        ? [`Its failure function at ${url} is called again at ${moment(next)}${after}.`]
        : [`Its failure function at ${url} is being called.`]
    case 'CALLBACK_SUCCESS':
      return ['Its failure function has been called.']
    case 'CALLBACK_FAIL':
      return [`Its failure function has failed for good${after}. Call it again: homeport runs retry-callbacks ${id}`]
    case 'CALLBACK_CANCELED':
      return ['The call of its failure function was cancelled.']
    case undefined:
      return []
  }
}
