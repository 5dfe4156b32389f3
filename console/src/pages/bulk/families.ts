/** The families of items that bulk actions work on: their filters, with the names in requests and on pages. */
import type { Kind } from './words.js'

/** A family of items. */
export type Family = 'runs' | 'deadRuns' | 'messages' | 'deadLetters' | 'cancelledRuns' | 'cancelledMessages'

/** The family of each kind of action. */
export const FAMILY_OF: Readonly<Record<Kind, Family>> = {
  cancelRuns: 'runs',
  resumeRuns: 'deadRuns',
  restartRuns: 'deadRuns',
  retryFailureCallbacks: 'deadRuns',
  deleteDeadRuns: 'deadRuns',
  cancelMessages: 'messages',
  retryDeadLetters: 'deadLetters',
  deleteDeadLetters: 'deadLetters',
  undoCancelRuns: 'cancelledRuns',
  undoCancelMessages: 'cancelledMessages',
  pauseRuns: 'runs',
  unpauseRuns: 'runs',
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
  /** The selector field that holds IDs. */
  readonly ids: 'workflowRunIds' | 'dlqIds' | 'messageIds'
  /** The filters in display order, with their selector fields. */
  readonly filters: Readonly<Partial<Record<FilterName, string>>>
  /** The items that the IDs identify. */
  readonly idsOf: string
  /** The labels of the two ends of the time range. */
  readonly times: Readonly<Record<'from' | 'to', string>>
}

const LETTER_TIMES = { from: 'Failed from', to: 'Failed to' }
const QUEUE_FILTERS = { queue: 'queueName', group: 'topicName', schedule: 'scheduleId' } as const
const CALLER_FILTERS = { caller: 'callerIp', flow: 'flowControlKey' } as const
const TIME_FILTERS = { from: 'fromDate', to: 'toDate' } as const

/** The facts of each family. */
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
  cancelledRuns: { ids: 'workflowRunIds', filters: {}, idsOf: 'cancelled runs', times: LETTER_TIMES },
  cancelledMessages: { ids: 'messageIds', filters: {}, idsOf: 'cancelled messages', times: LETTER_TIMES },
}

/** The filters for a kind of action. */
export const filterNamesOf = (kind: Kind): FilterName[] =>
  Object.keys(FAMILIES[FAMILY_OF[kind]].filters) as FilterName[]
