/** Texts for the kinds, states and outcomes of bulk actions. */
import type { Static } from 'typebox'
import type { BULK_KINDS, getBulkAction } from '../../../../src/contract/bulk/actions.js'
import type { Outcome } from '../../../../src/contract/bulk/answers.js'
import { BULK_KIND_WORDS, type KindWords } from '../../../../src/contract/words/bulk.js'
import * as words from '../../../../src/contract/words/states.js'
import { titlesOf } from '../../lib/states.js'

/** A bulk action. */
export type Action = Static<(typeof getBulkAction)['success']['body']>

/** The outcome of an item. */
export type OutcomeName = Static<typeof Outcome>

/** What the action does to each item. */
export type Kind = (typeof BULK_KINDS)[number]

interface Sentences {
  /** The words of the start button around its object: `Cancel 3 runs`. */
  readonly order: readonly [before: string, after?: string]
  readonly means: string
}

const SENTENCES: Readonly<Record<Kind, Sentences>> = {
  cancelRuns: {
    order: ['Cancel'],
    means: 'Nothing more of them is delivered, and their failure functions are not called. The cancel can be undone.',
  },
  resumeRuns: {
    order: ['Resume'],
    means: 'Each becomes a new run that keeps the finished steps and continues at the failed one.',
  },
  restartRuns: {
    order: ['Restart'],
    means: 'Each becomes a new run with the same payload, from the start.',
  },
  retryFailureCallbacks: {
    order: ['Call', 'again'],
    means: 'Failure functions that failed are called again. The runs do not change.',
  },
  deleteDeadRuns: {
    order: ['Delete'],
    means: 'They leave the dead letters and cannot be resumed or restarted. Their logs stay.',
  },
  cancelMessages: {
    order: ['Cancel'],
    means: 'Undelivered messages are not sent any more; requests in flight are aborted.',
  },
  retryDeadLetters: {
    order: ['Send', 'again'],
    means: 'Each becomes a new message with the same body and settings, and leaves the dead letters.',
  },
  undoCancelRuns: {
    order: ['Bring back'],
    means: 'Cancelled runs continue where they stood. Requests that were in flight are sent again.',
  },
  undoCancelMessages: {
    order: ['Bring back'],
    means: 'Cancelled messages are pending again and are sent.',
  },
  pauseRuns: {
    order: ['Pause'],
    means: 'Nothing more of them is sent until they are resumed. Requests in flight end, and their results are kept.',
  },
  unpauseRuns: {
    order: ['Unpause'],
    means: 'What was due meanwhile is sent at once. Runs that are not paused stay as they are.',
  },
  deleteDeadLetters: {
    order: ['Delete'],
    means: 'They cannot be sent again. The logs of their messages stay.',
  },
}

/** The texts of each kind. */
export const KIND_WORDS = Object.fromEntries(
  Object.entries(BULK_KIND_WORDS).map(([kind, named]) => [kind, { ...named, ...SENTENCES[kind as Kind] }]),
) as Readonly<Record<Kind, KindWords & Sentences>>

/** The states of an action. */
export const STATE_WORDS = titlesOf(words.BULK_WORDS)

/** The outcomes in display order. */
export const OUTCOME_WORDS = titlesOf(words.OUTCOME_WORDS)

/** Whether an action has ended for good. */
export const isOver = ({ state }: Pick<Action, 'state'>): boolean => state === 'finished' || state === 'aborted'

/** The counts above zero in display order; the rest is pending. */
export function countsOf({
  outcomes,
  matched,
  done,
}: Action): { readonly name: OutcomeName; readonly count: number }[] {
  const names = Object.keys(OUTCOME_WORDS) as OutcomeName[]
  const counts = names.map((name) => ({ name, count: name === 'pending' ? matched - done : (outcomes[name] ?? 0) }))
  return counts.filter(({ name, count }) => count > 0 || (name === 'failed' && done > 0))
}
