/** What bulk actions do and how they stand, in words. */
import type { Static } from 'typebox'
import type { BULK_KINDS, getBulkAction, Outcome } from '../../../../src/contract/bulk/actions.js'
import type { Tone } from '../../components/status.js'

/** A bulk action. */
export type Action = Static<(typeof getBulkAction)['success']['body']>

/** What an item came to. */
export type OutcomeName = Static<typeof Outcome>

/** What is done to each item. */
export type Kind = (typeof BULK_KINDS)[number]

interface KindWords {
  readonly title: string
  /** On the button that starts it, around what it is done to: `Cancel 3 runs`. */
  readonly order: readonly [before: string, after?: string]
  readonly item: string
  readonly items: string
  readonly means: string
}

const run = { item: 'run', items: 'runs' } as const
const letter = { item: 'dead letter', items: 'dead letters' } as const

/** What each kind does. */
export const KIND_WORDS: Readonly<Record<Kind, KindWords>> = {
  cancelRuns: {
    ...run,
    title: 'Cancel runs',
    order: ['Cancel'],
    means: 'They end forever: nothing of them is delivered again, and their failure functions are not called.',
  },
  resumeRuns: {
    item: 'failed run',
    items: 'failed runs',
    title: 'Resume failed runs',
    order: ['Resume'],
    means: 'Each becomes a new run that keeps the finished steps and goes on at what failed.',
  },
  restartRuns: {
    item: 'failed run',
    items: 'failed runs',
    title: 'Restart failed runs',
    order: ['Restart'],
    means: 'Each becomes a new run with the same payload, from the start.',
  },
  retryFailureCallbacks: {
    item: 'failure function',
    items: 'failure functions',
    title: 'Call failure functions again',
    order: ['Call', 'again'],
    means:
      'Of the failed runs whose failure function has failed too, it is called once more. The runs stay as they are.',
  },
  deleteDeadRuns: {
    item: 'failed run',
    items: 'failed runs',
    title: 'Delete failed runs',
    order: ['Delete'],
    means: 'They leave the dead letters and cannot be taken up again. Their logs stay.',
  },
  cancelMessages: {
    item: 'message',
    items: 'messages',
    title: 'Cancel messages',
    order: ['Cancel'],
    means: 'What has not arrived yet is not delivered any more; a request in flight is aborted.',
  },
  retryDeadLetters: {
    ...letter,
    title: 'Send dead letters again',
    order: ['Send', 'again'],
    means: 'Each becomes a new message with the same body and settings, and leaves the dead letters.',
  },
  deleteDeadLetters: {
    ...letter,
    title: 'Delete dead letters',
    order: ['Delete'],
    means: 'They are gone and cannot be sent again. The logs of their messages stay.',
  },
}

/** How an action stands. */
export const STATE_WORDS: Readonly<Record<Action['state'], { readonly tone: Tone; readonly title: string }>> = {
  running: { tone: 'busy', title: 'Working' },
  paused: { tone: 'warn', title: 'Paused' },
  finished: { tone: 'ok', title: 'Finished' },
  aborted: { tone: 'idle', title: 'Aborted' },
}

/** The outcomes in the order in which they are shown. */
export const OUTCOME_WORDS: Readonly<Record<OutcomeName, { readonly tone: Tone; readonly title: string }>> = {
  cancelled: { tone: 'ok', title: 'Cancelled' },
  resumed: { tone: 'ok', title: 'Resumed' },
  restarted: { tone: 'ok', title: 'Restarted' },
  deleted: { tone: 'ok', title: 'Deleted' },
  retried: { tone: 'ok', title: 'Sent again' },
  alreadyFinished: { tone: 'idle', title: 'Had ended before' },
  notFound: { tone: 'idle', title: 'Not found' },
  failed: { tone: 'bad', title: 'Failed' },
  skipped: { tone: 'idle', title: 'Skipped' },
  pending: { tone: 'busy', title: 'Still to come' },
}

/** Whether an action has ended for good. */
export const isOver = ({ state }: Pick<Action, 'state'>): boolean => state === 'finished' || state === 'aborted'

/** Counts that are there, as they are shown. What is still to come is the rest. */
export function countsOf({
  outcomes,
  matched,
  done,
}: Action): { readonly name: OutcomeName; readonly count: number }[] {
  const names = Object.keys(OUTCOME_WORDS) as OutcomeName[]
  const counts = names.map((name) => ({ name, count: name === 'pending' ? matched - done : (outcomes[name] ?? 0) }))
  return counts.filter(({ name, count }) => count > 0 || (name === 'failed' && done > 0))
}

const FIELD_WORDS: Readonly<Record<string, string>> = {
  workflowUrl: 'URL',
  workflowUrlExactMatch: 'whole URL',
  label: 'label',
  host: 'host',
  path: 'path',
  callerIp: 'caller',
  flowControlKey: 'flow-control key',
  fromDate: 'from',
  toDate: 'to',
  responseStatus: 'status',
  failureFunctionState: 'failure function',
  url: 'URL',
  queueName: 'queue',
  topicName: 'URL group',
  scheduleId: 'schedule',
  count: 'at most',
}

/** What records of earlier actions hold beside the choice; it is shown on its own. */
const NO_FILTERS = new Set(['reason', 'ratePerSecond', 'fenceUntil', 'async', 'report', 'dryRun'])

/** A selector in one line. */
export function selectorText(selector: Readonly<Record<string, unknown>>, time: (atMs: number) => string): string {
  const filters = Object.entries(selector).filter(([name]) => !NO_FILTERS.has(name) && !name.endsWith('Total'))
  const parts = filters.map(([name, value]) => {
    if (name.endsWith('Ids') && Array.isArray(value)) return `${selector[`${name}Total`] ?? value.length} ids`
    return `${FIELD_WORDS[name] ?? name} ${valueText(name, value, time)}`
  })
  return parts.length === 0 ? 'everything' : parts.join(', ')
}

function valueText(name: string, value: unknown, time: (atMs: number) => string): string {
  if ((name === 'fromDate' || name === 'toDate') && typeof value === 'number') return time(value)
  return Array.isArray(value) ? value.join(' or ') : String(value)
}
