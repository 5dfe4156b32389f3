import { HomeportError } from '../../contract/errors/errors.js'
import type * as bulkRead from '../transactions/bulk-read.js'

/** Cursors of pages. Their texts mean nothing to callers; what we did not hand out is refused. */

/** The cursor after an action. */
export function actionsCursor(seq: number): string {
  return String(seq)
}

/** The number that the next page of actions stays below. */
export function readActionsCursor(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER
  const [seq] = numbers(cursor, /^(\d{1,15})$/)
  return seq ?? 0
}

/** The cursor of a place in the items of an action. */
export function itemCursor({ chunk, position }: bulkRead.ItemPlace): string {
  return `${chunk}-${position}`
}

/** The place where the next page of items begins. */
export function readItemCursor(cursor: string | undefined): bulkRead.ItemPlace {
  if (cursor === undefined) return { chunk: 0, position: 0 }
  const [chunk, position] = numbers(cursor, /^(\d{1,9})-(\d{1,9})$/)
  return { chunk: chunk ?? 0, position: position ?? 0 }
}

function numbers(cursor: string, shape: RegExp): number[] {
  const match = shape.exec(cursor)
  if (match) return match.slice(1).map(Number)
  const problem =
    'The query parameter `cursor` must be the cursor of an earlier page, or be left out for the first page.'
  throw new HomeportError('invalid_request', { problem })
}
