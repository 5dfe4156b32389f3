/** Limits of what one request may name. A caller with more sends several requests. */

/** Most ids of runs, messages or dead letters in the selector of a bulk cancel or bulk action. */
export const MAX_IDS = 100_000

/** Most ids of an operation that handles one page of dead letters in one transaction. */
export const MAX_PAGE_IDS = 1_000

/** Most values of one filter: every candidate is compared with each of them. */
export const MAX_FILTER_VALUES = 100

/** Most characters of one id or one filter value: as many as a URL may have. */
export const MAX_VALUE_LENGTH = 8_192

/** Most header fields of one batch item. */
export const MAX_ITEM_HEADERS = 500

/** Most bytes in the header names and values of one batch item: the limit of an HTTP request. */
export const MAX_ITEM_HEADER_BYTES = 65_536
