import { printable } from '../terminal/text.js'
import type { SeenRun } from './find.js'

/** How a run has ended, in sentences: what failed, what is left of it, and what is still being done. */
export function endingOf(run: SeenRun): string[] {
  const { workflowRunId: id, workflowState: state, canceledBy, dlqId } = run
  return [
    `The run has ended: ${state}${state === 'RUN_FAILED' ? failureOf(run) : ''}.`,
    ...(canceledBy
      ? [`The bulk action ${canceledBy.actionId} of ${canceledBy.actor} cancelled it${reason(canceledBy)}.`]
      : []),
    ...callingOf(run),
    ...(dlqId === undefined ? [] : [`It is the dead letter ${dlqId}. Take it up again: homeport runs resume ${id}`]),
  ].map(printable)
}

const reason = (canceledBy: { readonly reason?: string }): string =>
  canceledBy.reason === undefined ? '' : `: ${canceledBy.reason}`

function failureOf({ steps }: SeenRun): string {
  const failed = steps.flatMap((group) => group.steps).findLast(({ state }) => state === 'STEP_FAILED')
  const last = failed?.errors?.at(-1)
  const place = failed?.stepName === undefined ? '' : ` in step "${failed.stepName}"`
  return last ? `${place}, after ${answerOf(last)}` : place
}

interface Answer {
  readonly status: number
  readonly error: string
}

function answerOf({ status, error }: Answer): string {
  const code = `HTTP ${status}`
  return status === 0 || error === code ? error : `${code}: ${error}`
}

function callingOf({ failureFunction, workflowRunId: id }: SeenRun): string[] {
  if (!failureFunction) return []
  const { url = '', state, errors = [], nextDeliveryTime: next } = failureFunction
  const last = errors.at(-1)
  const after = last ? `, after ${answerOf(last)}` : ''
  switch (state) {
    case 'CALLBACK_INPROGRESS':
      return last && next !== undefined
        ? [`Its failure function at ${url} is called again at ${new Date(next).toISOString()}${after}.`]
        : [`Its failure function at ${url} is being called.`]
    case 'CALLBACK_SUCCESS':
      return ['Its failure function has been called.']
    case 'CALLBACK_FAIL':
      return [`Its failure function has failed for good${after}. Call it again: homeport runs retry-callbacks ${id}`]
    case 'CALLBACK_CANCELED':
      return ['The call of its failure function was given up.']
    case undefined:
      return []
  }
}
