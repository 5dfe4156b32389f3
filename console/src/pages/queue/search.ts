/** The filters of the lists, as URL parameters. */
import { given, one, textAt, wholeAt } from '../../lib/search.js'

/** The states of the filter. */
export const STATE_FILTERS = ['unfinished', 'delivered', 'failed', 'canceled'] as const

/** A state of the filter. */
export type StateFilter = (typeof STATE_FILTERS)[number]

/** The filters of both lists. */
export interface CommonSearch {
  readonly url?: string
  readonly label?: string
  readonly queue?: string
}

/** Events of a message to filter by, as states of its log. */
export const EVENT_FILTERS = ['CREATED', 'DELIVERED', 'ERROR', 'FAILED'] as const

/** An event of a message. */
export type EventFilter = (typeof EVENT_FILTERS)[number]

/** The URL parameters of the list of messages. */
export interface MessageSearch extends CommonSearch {
  readonly standing?: StateFilter
  /** Only messages with this event between the times. */
  readonly happened?: EventFilter
  /** Unix milliseconds, both included. */
  readonly from?: number
  readonly to?: number
  /** Part of the id, URL, a label, the queue, the URL group or the error. */
  readonly search?: string
  /** Whether the publish dialog is open. */
  readonly publish?: true
}

/** The URL parameters of the list of dead letters. */
export interface DeadSearch extends CommonSearch {
  /** Status of the last response. */
  readonly status?: number
}

const commonOf = (search: Record<string, unknown>): CommonSearch =>
  given({ url: textAt(search, 'url'), label: textAt(search, 'label'), queue: textAt(search, 'queue') })

/** Reads the URL of the list of messages; unknown parameters are dropped. */
export function messageSearchOf(search: Record<string, unknown>): MessageSearch {
  const standing = STATE_FILTERS.find((known) => known === search.standing)
  const text = textAt(search, 'search')
  return {
    ...commonOf(search),
    ...given({
      standing,
      search: text,
      happened: EVENT_FILTERS.find((known) => known === search.happened),
      from: wholeAt(search, 'from'),
      to: wholeAt(search, 'to'),
    }),
    ...(search.publish === true && { publish: true }),
  }
}

/** Reads the URL of the list of dead letters. */
export function deadSearchOf(search: Record<string, unknown>): DeadSearch {
  return { ...commonOf(search), ...given({ status: wholeAt(search, 'status') }) }
}

/** The filters by time as parameters of the log. */
export const timesOf = ({ happened, from, to }: MessageSearch) =>
  given({ state: one(happened), fromDate: from, toDate: to })

/** The filters as parameters of the queue API. */
export const filtersOf = ({ url, label, queue }: CommonSearch) =>
  given({ url: one(url), label: one(label), queueName: one(queue) })
