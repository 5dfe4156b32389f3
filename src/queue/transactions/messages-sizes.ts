import { sql } from 'kysely'

/**
 * Pages of messages are limited in bytes too, because a page is in memory as a whole and a hundred messages may be
 * gigabytes. So sizes are read first, and then only the rows that fit.
 */

/** Content of one page, bytes. A single larger message makes a page of its own. */
const PAGE_BYTES = 8 * 2 ** 20

const HEADING = sql`octet_length(headers) + coalesce(octet_length(config), 0) + coalesce(octet_length(response_headers), 0)`

/** Bytes of a message without the bodies: its headers, those of its response, and its settings. */
export const headingBytes = sql<number>`${HEADING}`.as('heading_bytes')

/** Bytes of a message: its body, its response body, both headers, and its settings. */
export const contentBytes = sql<number>`coalesce(length(body), 0) + coalesce(length(response_body), 0) + ${HEADING}`.as(
  'bytes',
)

interface Sized {
  readonly bytes: number
}

/** The first rows, as many as fit into a page, but at least one. */
export function firstFitting<Row extends Sized>(rows: readonly Row[]): readonly Row[] {
  let total = 0
  const over = rows.findIndex((row, index) => {
    total += row.bytes
    return index > 0 && total > PAGE_BYTES
  })
  return over < 0 ? rows : rows.slice(0, over)
}

/** Splits rows into batches that each fit into a page. */
export function pageBatches<Row extends Sized>(rows: readonly Row[]): (readonly Row[])[] {
  const batches: (readonly Row[])[] = []
  for (let left = rows; left.length > 0; ) {
    const batch = firstFitting(left)
    batches.push(batch)
    left = left.slice(batch.length)
  }
  return batches
}

/** Puts rows that were read by number into the order of their places. */
export function inOrderOf<Row extends { readonly seq: number }>(
  places: readonly { readonly seq: number }[],
  rows: readonly Row[],
): Row[] {
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  return places.map(({ seq }) => bySeq.get(seq)).filter((row) => row !== undefined)
}
