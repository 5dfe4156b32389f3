/** What bulk actions are done to: which filters choose among them, and what those are called in requests and in words. */
import type { Kind } from './words.js'

/** What the items of an action are. */
export type Family = 'runs' | 'deadRuns' | 'messages' | 'deadLetters'

/** What the items of each kind are. */
export const FAMILY_OF: Readonly<Record<Kind, Family>> = {
  cancelRuns: 'runs',
  resumeRuns: 'deadRuns',
  restartRuns: 'deadRuns',
  retryFailureCallbacks: 'deadRuns',
  deleteDeadRuns: 'deadRuns',
  cancelMessages: 'messages',
  retryDeadLetters: 'deadLetters',
  deleteDeadLetters: 'deadLetters',
}

/** The filters of the wizard. */
export type FilterName =
  | 'url'
  | 'label'
  | 'from'
  | 'to'
  | 'host'
  | 'path'
  | 'queue'
  | 'group'
  | 'schedule'
  | 'caller'
  | 'flow'
  | 'status'

interface FamilyFacts {
  /** The field of a selector that names items by their ids. */
  readonly ids: 'workflowRunIds' | 'dlqIds' | 'messageIds'
  /** The filters in the order in which they are shown, with their fields in a selector. */
  readonly filters: Readonly<Partial<Record<FilterName, string>>>
  /** What the ids are called. */
  readonly idsOf: string
  /** What the two ends of the range of time hold for. */
  readonly times: Readonly<Record<'from' | 'to', string>>
}

const LETTER_TIMES = { from: 'Failed from', to: 'Failed to' }
const QUEUE_FILTERS = { queue: 'queueName', group: 'topicName', schedule: 'scheduleId' } as const
const CALLER_FILTERS = { caller: 'callerIp', flow: 'flowControlKey' } as const
const TIME_FILTERS = { from: 'fromDate', to: 'toDate' } as const

/** What is known of each family. */
export const FAMILIES: Readonly<Record<Family, FamilyFacts>> = {
  runs: {
    ids: 'workflowRunIds',
    filters: {
      url: 'workflowUrl',
      label: 'label',
      ...TIME_FILTERS,
      host: 'host',
      path: 'path',
      ...CALLER_FILTERS,
    },
    idsOf: 'runs',
    times: { from: 'Triggered after', to: 'Triggered before' },
  },
  deadRuns: {
    ids: 'dlqIds',
    filters: { url: 'workflowUrl', label: 'label', ...TIME_FILTERS, ...CALLER_FILTERS, status: 'responseStatus' },
    idsOf: 'dead letters',
    times: LETTER_TIMES,
  },
  messages: {
    ids: 'messageIds',
    filters: {
      url: 'url',
      label: 'label',
      ...TIME_FILTERS,
      host: 'host',
      path: 'path',
      ...QUEUE_FILTERS,
      ...CALLER_FILTERS,
    },
    idsOf: 'messages',
    times: { from: 'Published from', to: 'Published to' },
  },
  deadLetters: {
    ids: 'dlqIds',
    filters: {
      url: 'url',
      label: 'label',
      ...TIME_FILTERS,
      ...QUEUE_FILTERS,
      ...CALLER_FILTERS,
      status: 'responseStatus',
    },
    idsOf: 'dead letters',
    times: LETTER_TIMES,
  },
}

/** The filters that choose among the items of a kind. */
export const filterNamesOf = (kind: Kind): FilterName[] =>
  Object.keys(FAMILIES[FAMILY_OF[kind]].filters) as FilterName[]
