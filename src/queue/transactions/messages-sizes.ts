import { sql } from 'kysely'

/**
 * Pages of messages are bounded in bytes too. A page is held in memory as a whole, and a hundred messages may be
 * nothing or gigabytes: so it is found out first what there is and how large it is, and then what fits is read.
 */

/** So much content a page may have; one message may have more, and makes a page of its own. */
export const PAGE_BYTES = 8 * 2 ** 20

/** What the contents of a message take: its body and that of the answer. */
export const contentBytes = sql<number>`coalesce(length(body), 0) + coalesce(length(response_body), 0)`.as('bytes')

interface Sized {
  readonly bytes: number
}

/** The first of some rows, as many as a page may have, but one at least. */
export function firstFitting<Row extends Sized>(rows: readonly Row[]): readonly Row[] {
  let total = 0
  const over = rows.findIndex((row, index) => {
    total += row.bytes
    return index > 0 && total > PAGE_BYTES
  })
  return over < 0 ? rows : rows.slice(0, over)
}

/** The same rows in parts of which each fits into a page. */
export function fittingParts<Row extends Sized>(rows: readonly Row[]): (readonly Row[])[] {
  const parts: (readonly Row[])[] = []
  for (let left = rows; left.length > 0; ) {
    const part = firstFitting(left)
    parts.push(part)
    left = left.slice(part.length)
  }
  return parts
}

/** Rows that were read by number, in the order of the places that they were read for. */
export function inOrderOf<Row extends { readonly seq: number }>(
  places: readonly { readonly seq: number }[],
  rows: readonly Row[],
): Row[] {
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  return places.map(({ seq }) => bySeq.get(seq)).filter((row) => row !== undefined)
}
