import type { Static } from 'typebox'
import { type BULK_KINDS, type getBulkAction, startBulkAction } from '../../contract/bulk/actions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { FAILED } from '../exit-codes.js'
import { orMissing } from '../remote/missing.js'
import type { Session } from '../remote/remote.js'
import { toneOfState } from '../terminal/colors.js'
import { counted, duration, figure, moment } from '../terminal/figures.js'
import { progressOf } from '../terminal/progress.js'
import type { Fact } from '../terminal/table.js'
import { follow } from './events.js'

/** A bulk action as the API shows it. */
export type Action = Static<typeof getBulkAction.success.body>

/**
 * The answer to a request about one bulk action.
 * @throws HomeportError `cli_not_found`.
 */
export function knownAction<Answer>(actionId: string, asked: Promise<Answer>): Promise<Answer> {
  return orMissing(asked, `There is no bulk action "${actionId}". See: homeport bulk list.`)
}

/** Follows an action to its end, or until it is paused, with a bar. Answers it as it was then. */
export async function watch({ api, io }: Session, actionId: string): Promise<Action> {
  const progress = progressOf(io, 'items')
  try {
    for await (const action of follow(api, actionId)) {
      progress.at(action.done, action.matched)
      if (action.state !== 'running') return action
    }
  } finally {
    progress.end()
  }
  throw new HomeportError('cli_failed', { problem: `The events of ${actionId} ended before the action did.` })
}

/**
 * Does something to a set that is fixed before the work begins, and waits for the end. Page by page the set would grow
 * while it is worked on: what is sent again and fails again would be met again.
 */
export async function carryOut(
  session: Session,
  body: { readonly kind: (typeof BULK_KINDS)[number]; readonly selector: Record<string, unknown> },
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { actionId } = await session.api.call(startBulkAction, { body, headers })
  const action = await watch(session, actionId)
  session.show(action, () => endOf(action))
  if (action.failed > 0) session.endWith(FAILED)
}

/** What each kind of item is called, where a number stands before it. */
const ITEMS: Readonly<Record<Action['kind'], string>> = {
  cancelRuns: 'run',
  cancelMessages: 'message',
  resumeRuns: 'run',
  restartRuns: 'run',
  retryFailureCallbacks: 'failed run',
  deleteDeadRuns: 'failed run',
  deleteDeadLetters: 'dead letter',
  retryDeadLetters: 'dead letter',
}

const WORDS: Readonly<Record<string, string>> = {
  alreadyFinished: 'already finished',
  notFound: 'not found',
  retried: 'sent again',
}

/** The outcomes that there are, with their counts. */
const outcomesOf = ({ outcomes }: Action): (readonly [name: string, count: number])[] =>
  Object.entries(outcomes).flatMap(([name, count]) => (count === undefined ? [] : [[WORDS[name] ?? name, count]]))

/** How it ended, in a line: `finished: 200 runs, 198 cancelled, 2 already finished`. */
export function endOf(action: Action): string {
  const counts = outcomesOf(action).filter(([, count]) => count > 0)
  const parts = counts.map(([name, count]) => `${figure(count)} ${name}`)
  return `${action.state}: ${[counted(action.matched, ITEMS[action.kind]), ...parts].join(', ')}\n`
}

/** What an action is and how far it is. */
export function actionFacts(action: Action): Fact[] {
  const { createdAt, finishedAt } = action
  return [
    ['action', action.actionId],
    ['kind', action.kind],
    ['state', action.state, toneOfState(action.state)],
    ['selector', JSON.stringify(action.selector)],
    ['reason', action.reason],
    ['by', action.createdBy],
    ['begun', moment(createdAt)],
    ['paused', moment(action.pausedAt)],
    ['ended', finishedAt && `${moment(finishedAt)} (took ${duration(finishedAt - createdAt)})`],
    ['rate', action.ratePerSecond && `${figure(action.ratePerSecond)} a second`],
    ['fence until', moment(action.fenceUntil)],
    ['done', `${figure(action.done)} of ${figure(action.matched)}`],
    ...outcomesOf(action).map(([name, count]): Fact => [name, figure(count)]),
  ]
}
