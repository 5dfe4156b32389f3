import type { Static } from 'typebox'
import type { getBulkAction } from '../../contract/bulk/actions.js'
import { BULK_KIND_WORDS } from '../../contract/words/bulk.js'
import { selectorText } from '../../contract/words/selector.js'
import { BULK_WORDS, OUTCOME_WORDS } from '../../contract/words/states.js'
import { orMissing } from '../remote/api.js'
import { counted, duration, figure, moment } from '../terminal/figures.js'
import { type Fact, stateFact } from '../terminal/table.js'

/** A bulk action. */
export type Action = Static<typeof getBulkAction.success.body>

/**
 * Awaits a request about one bulk action.
 * @throws HomeportError `cli_not_found`.
 */
export function actionOrMissing<Answer>(actionId: string, request: Promise<Answer>): Promise<Answer> {
  return orMissing(request, `There is no bulk action "${actionId}". See: homeport bulk list.`)
}

/** A number of items of an action in words: `1 run`, `3 dead letters`. */
export function itemsOf(kind: Action['kind'], count: number): string {
  const { item, items } = BULK_KIND_WORDS[kind]
  return counted(count, item, items)
}

/** The action in words: `cancel runs`. */
export const titleOf = (kind: Action['kind']): string => BULK_KIND_WORDS[kind].title.toLowerCase()

/** The outcomes of an action with their counts. */
const outcomesOf = ({ outcomes }: Action): (readonly [name: string, count: number])[] =>
  Object.entries(outcomes).flatMap(([name, count]) => (count === undefined ? [] : [[wordOf(name), count]]))

const wordOf = (outcome: string): string =>
  Object.entries(OUTCOME_WORDS).find(([name]) => name === outcome)?.[1].word ?? outcome

/** The result in one line: `finished: 200 runs, 198 cancelled, 2 already ended`. */
export function summaryOf(action: Action): string {
  const counts = outcomesOf(action).filter(([, count]) => count > 0)
  const parts = counts.map(([name, count]) => `${figure(count)} ${name}`)
  const undo = action.undo === undefined ? '' : `to undo it: ${undoLine(action)}\n`
  return `${BULK_WORDS[action.state].word}: ${[itemsOf(action.kind, action.matched), ...parts].join(', ')}\n${undo}`
}

/** The selector of an action or of a saved selector, in words. */
export const selectionOf = (one: Pick<Action, 'kind' | 'selector'>): string =>
  selectorText(one, (atMs) => moment(atMs) ?? '')

const undoLine = ({ actionId }: Action): string => `homeport bulk undo ${actionId}`

/** The settings and the progress of an action. */
export function actionFacts(action: Action): Fact[] {
  const { createdAt, finishedAt } = action
  return [
    ['action', action.actionId],
    ['kind', `${action.kind} (${titleOf(action.kind)})`],
    stateFact(BULK_WORDS[action.state]),
    ['selection', selectionOf(action)],
    ['reason', action.reason],
    ['started by', action.createdBy],
    ['started', moment(createdAt)],
    ['paused', moment(action.pausedAt)],
    ['ended', finishedAt && `${moment(finishedAt)} (took ${duration(finishedAt - createdAt)})`],
    ['rate', action.ratePerSecond && `${figure(action.ratePerSecond)} per second`],
    ['fence until', moment(action.fenceUntil)],
    ['done', `${figure(action.done)} of ${figure(action.matched)}`],
    ['could not be read', action.unreadable && figure(action.unreadable)],
    ...outcomesOf(action).map(([name, count]): Fact => [name, figure(count)]),
    ['to undo it', action.undo && undoLine(action)],
  ]
}
