/** The filters of the lists, as they stand in the address. */

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

const textAt = (search: Record<string, unknown>, name: string): string | undefined => {
  const value = search[name]
  // A label such as 42 stands in the address like the number 42.
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text !== '' ? text : undefined
}

function commonOf(search: Record<string, unknown>): CommonSearch {
  const [url, label, queue] = [textAt(search, 'url'), textAt(search, 'label'), textAt(search, 'queue')]
  return { ...(url && { url }), ...(label && { label }), ...(queue && { queue }) }
}

/** Reads the address of the list of messages; what it does not know is left out. */
export function messageSearchOf(search: Record<string, unknown>): MessageSearch {
  const standing = STANDINGS.find((known) => known === search.standing)
  return { ...commonOf(search), ...(standing && { standing }), ...(search.publish === true && { publish: true }) }
}

/** Reads the address of the list of dead letters. */
export function deadSearchOf(search: Record<string, unknown>): DeadSearch {
  const status = Number(textAt(search, 'status') ?? Number.NaN)
  return { ...commonOf(search), ...(Number.isInteger(status) && { status }) }
}

/** The same filters as the operations of the queue take them. */
export function filtersOf({ url, label, queue }: CommonSearch): {
  url?: string[]
  label?: string[]
  queueName?: string[]
} {
  return { ...(url && { url: [url] }), ...(label && { label: [label] }), ...(queue && { queueName: [queue] }) }
}
