/** The filters of the lists, as they stand in the address. */
import { given, one, textAt, wholeAt } from '../../lib/search.js'

/** How a message stands, in the words of the filter. */
export const STANDINGS = ['unfinished', 'delivered', 'failed', 'canceled'] as const

/** How a message stands, in the words of the filter. */
export type Standing = (typeof STANDINGS)[number]

/** Filters that both lists know. */
export interface CommonSearch {
  readonly url?: string
  readonly label?: string
  readonly queue?: string
}

/** What the list of messages shows. */
export interface MessageSearch extends CommonSearch {
  readonly standing?: Standing
  /** The form for publishing is open. */
  readonly publish?: true
}

/** What the list of dead letters shows. */
export interface DeadSearch extends CommonSearch {
  /** Status of the last answer. */
  readonly status?: number
}

const commonOf = (search: Record<string, unknown>): CommonSearch =>
  given({ url: textAt(search, 'url'), label: textAt(search, 'label'), queue: textAt(search, 'queue') })

/** Reads the address of the list of messages; what it does not know is left out. */
export function messageSearchOf(search: Record<string, unknown>): MessageSearch {
  const standing = STANDINGS.find((known) => known === search.standing)
  return { ...commonOf(search), ...(standing && { standing }), ...(search.publish === true && { publish: true }) }
}

/** Reads the address of the list of dead letters. */
export function deadSearchOf(search: Record<string, unknown>): DeadSearch {
  return { ...commonOf(search), ...given({ status: wholeAt(search, 'status') }) }
}

/** The same filters as the operations of the queue take them. */
export const filtersOf = ({ url, label, queue }: CommonSearch) =>
  given({ url: one(url), label: one(label), queueName: one(queue) })
