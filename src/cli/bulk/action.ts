import type { Static } from 'typebox'
import type { getBulkAction } from '../../contract/bulk/actions.js'
import { orMissing } from '../remote/api.js'
import { counted, duration, figure, moment } from '../terminal/figures.js'
import type { Fact } from '../terminal/table.js'
import { toneOfState } from '../terminal/text.js'

/** A bulk action. */
export type Action = Static<typeof getBulkAction.success.body>

/**
 * Awaits a request about one bulk action.
 * @throws HomeportError `cli_not_found`.
 */
export function actionOrMissing<Answer>(actionId: string, request: Promise<Answer>): Promise<Answer> {
  return orMissing(request, `There is no bulk action "${actionId}". See: homeport bulk list.`)
}

/** The singular name of the items of each kind. */
const ITEMS: Readonly<Record<Action['kind'], string>> = {
  cancelRuns: 'run',
  cancelMessages: 'message',
  resumeRuns: 'run',
  restartRuns: 'run',
  retryFailureCallbacks: 'failed run',
  deleteDeadRuns: 'failed run',
  deleteDeadLetters: 'dead letter',
  retryDeadLetters: 'dead letter',
  undoCancelRuns: 'run',
  undoCancelMessages: 'message',
  pauseRuns: 'run',
  unpauseRuns: 'run',
}

const WORDS: Readonly<Record<string, string>> = {
  alreadyFinished: 'already finished',
  notFound: 'not found',
  retried: 'sent again',
  undone: 'brought back',
  unpaused: 'let go on',
}

/** The outcomes of an action with their counts. */
const outcomesOf = ({ outcomes }: Action): (readonly [name: string, count: number])[] =>
  Object.entries(outcomes).flatMap(([name, count]) => (count === undefined ? [] : [[WORDS[name] ?? name, count]]))

/** The result in one line: `finished: 200 runs, 198 cancelled, 2 already finished`. */
export function summaryOf(action: Action): string {
  const counts = outcomesOf(action).filter(([, count]) => count > 0)
  const parts = counts.map(([name, count]) => `${figure(count)} ${name}`)
  const undo = action.undo === undefined ? '' : `to undo it: ${undoLine(action)}\n`
  return `${action.state}: ${[counted(action.matched, ITEMS[action.kind]), ...parts].join(', ')}\n${undo}`
}

const undoLine = ({ actionId }: Action): string => `homeport bulk undo ${actionId}`

/** The settings and the progress of an action. */
export function actionFacts(action: Action): Fact[] {
  const { createdAt, finishedAt } = action
  return [
    ['action', action.actionId],
    ['kind', action.kind],
    ['state', action.state, toneOfState(action.state)],
    ['selector', JSON.stringify(action.selector)],
    ['reason', action.reason],
    ['started by', action.createdBy],
    ['started', moment(createdAt)],
    ['paused', moment(action.pausedAt)],
    ['ended', finishedAt && `${moment(finishedAt)} (took ${duration(finishedAt - createdAt)})`],
    ['rate', action.ratePerSecond && `${figure(action.ratePerSecond)} per second`],
    ['fence until', moment(action.fenceUntil)],
    ['done', `${figure(action.done)} of ${figure(action.matched)}`],
    ...outcomesOf(action).map(([name, count]): Fact => [name, figure(count)]),
    ['to undo it', action.undo && undoLine(action)],
  ]
}
