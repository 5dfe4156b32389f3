import { HomeportError } from '../../contract/errors/errors.js'
import type { RunRow } from '../transactions/runs-rows.js'

/**
 * The place in the list of runs after which a page begins, as a `runs.seq`.
 * @throws HomeportError `invalid_request` for what `cursorAfter` never made.
 */
export function placeOf(cursor: string | undefined): number {
  if (cursor === undefined || cursor === '') return Number.MAX_SAFE_INTEGER
  const seq = /^\d{1,15}-(\d{1,15})$/.exec(cursor)?.[1]
  if (seq !== undefined) return Number(seq)
  throw new HomeportError('invalid_request', {
    problem: `cursor is ${JSON.stringify(cursor.slice(0, 80))}; send the cursor of the page before, or none for the first page.`,
  })
}

/** The cursor of the next page; no member at all after the last one, by which clients know the end. */
export function cursorAfter({ runs, more }: { runs: readonly RunRow[]; more: boolean }): { cursor?: string } {
  const last = runs.at(-1)
  return last && more ? { cursor: `${last.created_at}-${last.seq}` } : {}
}
