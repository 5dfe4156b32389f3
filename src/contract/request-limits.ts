/** How much one request may name. Whoever has more sends several requests. */

/** Ids of runs, messages or dead letters that a bulk cancel or a bulk action selects. */
export const MOST_IDS = 100_000

/** Ids of an operation that works on one page of dead letters, in one transaction. */
export const MOST_PAGE_IDS = 1_000

/** Values of one filter: everything that may be selected is held against each of them. */
export const MOST_FILTER_VALUES = 100

/** Characters of one id, and of one value of a filter: as many as a URL may have. */
export const LONGEST_VALUE = 8_192

/** Header fields of one item of a batch. */
export const MOST_ITEM_HEADERS = 500

/** Names and values of the header fields of one item of a batch, bytes: as much as an HTTP request may have. */
export const MOST_ITEM_HEADER_BYTES = 65_536
