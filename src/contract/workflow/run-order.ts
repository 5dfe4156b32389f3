/** What runs can be sorted by. */
export const RUN_SORTS = ['created', 'ended', 'duration', 'state', 'id', 'url', 'label'] as const

/** What runs are sorted by. */
export type RunSort = (typeof RUN_SORTS)[number]

/** The direction of an order. */
export type SortDirection = 'asc' | 'desc'

/** Most runs that one request sorts, the newest in its time range. Sorting a million runs would take a third of a second. */
export const MAX_SORTED = 100_000

const LARGEST_FIRST: readonly RunSort[] = ['created', 'ended', 'duration']

/** The default direction of an order: the latest and longest first, texts and states from A to Z. */
export const usualDirection = (sort: RunSort): SortDirection => (LARGEST_FIRST.includes(sort) ? 'desc' : 'asc')
