import type { BULK_KINDS } from '../bulk/actions.js'

/** The words for the kinds of bulk actions. */

/** The words for one kind of action and for its items. */
export interface KindWords {
  /** As a heading: `Cancel runs`. */
  readonly title: string
  /** One item, and several. */
  readonly item: string
  readonly items: string
}

const named = (title: string, item: string): KindWords => ({ title, item, items: `${item}s` })

/** The words for each kind. */
export const BULK_KIND_WORDS: Readonly<Record<(typeof BULK_KINDS)[number], KindWords>> = {
  cancelRuns: named('Cancel runs', 'run'),
  resumeRuns: named('Resume failed runs', 'failed run'),
  restartRuns: named('Restart failed runs', 'failed run'),
  retryFailureCallbacks: named('Call failure functions again', 'failure function'),
  deleteDeadRuns: named('Delete failed runs', 'failed run'),
  cancelMessages: named('Cancel messages', 'message'),
  retryDeadLetters: named('Send dead letters again', 'dead letter'),
  undoCancelRuns: named('Undo a cancel of runs', 'cancelled run'),
  undoCancelMessages: named('Undo a cancel of messages', 'cancelled message'),
  pauseRuns: named('Pause runs', 'run'),
  unpauseRuns: named('Unpause runs', 'run'),
  deleteDeadLetters: named('Delete dead letters', 'dead letter'),
}
