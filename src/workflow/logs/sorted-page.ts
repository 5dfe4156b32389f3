import { HomeportError } from '../../contract/errors/errors.js'
import { MAX_SORTED, type RunSort } from '../../contract/workflow/run-order.js'
import type { Store } from '../../store/index.js'
import type { RunLogPage } from '../transactions/runs-logs.js'
import * as runsLogs from '../transactions/runs-logs.js'
import type { SortedArgs, SortedPart, SortedRun, SortValue } from '../transactions/runs-sorted.js'
import * as runsSorted from '../transactions/runs-sorted.js'
import { MAX_SEARCHED } from '../transactions/runs-walk.js'

/** Selects a page; without a cursor the first one. */
export type SortedRequest = Omit<SortedArgs, 'before' | 'least' | 'after'> & { readonly cursor: string | undefined }

/** A page of a sorted list. */
export interface SortedPage extends RunLogPage {
  /** Where the next page begins; absent on the last one. */
  readonly cursor?: string
  /** The list has only the runs created since then, Unix milliseconds. */
  readonly sortedFrom?: number
}

/**
 * The runs that a sorted list contains, and the time for which it is computed. They are fixed with the first page, so that
 * no run is on two pages because new runs started or its duration grew.
 */
interface Sorted {
  /** The durations of active runs end at this time, Unix milliseconds. */
  readonly now: number
  /** Exclusive upper bound of `runs.seq`. */
  readonly before: number
  /** `runs.seq` of the oldest sorted run, and when it was created; 0 and 0 if all runs are sorted. */
  readonly least: number
  readonly from: number
}

/** A page of runs in the order of a value. Sorts only the newest `most` runs, some thousands per read. */
export async function sortedPage(
  store: Store,
  { cursor, ...request }: SortedRequest,
  most = MAX_SORTED,
): Promise<SortedPage> {
  const { accountId, limit, sort, now } = request
  const place = cursor === undefined ? { sorted: await newList(store, accountId, now) } : placeOf(cursor, sort)
  const { now: at, before, least } = place.sorted
  const args = { ...request, now: at, limit: limit + 1, before, least, ...('after' in place && { after: place.after }) }
  const { runs: found, end } = await firstOf(store, args, most)
  const sorted = end ? { ...place.sorted, least: end.seq, from: end.at } : place.sorted
  const seqs = found.slice(0, limit).map(({ seq }) => seq)
  const page = await store.run(runsLogs.logPageOf, { accountId, seqs, now })
  // A run may have been deleted since it was sorted.
  const last = found.find(({ seq }) => seq === page.runs.at(-1)?.seq) ?? found[seqs.length - 1]
  const isLast = !page.more && found.length <= limit
  return {
    ...page,
    ...(last && !isLast && { cursor: cursorAfter(last, sorted) }),
    ...(sorted.least > 0 && { sortedFrom: sorted.from }),
  }
}

const newList = async (store: Store, accountId: string, now: number): Promise<Sorted> => {
  const newest = await store.run(runsSorted.newestRun, { accountId })
  return { now, before: newest + 1, least: 0, from: 0 }
}

/** The first runs of an order, with the place where the reads ended if runs remain. */
async function firstOf(store: Store, args: SortedArgs, most: number): Promise<SortedPart> {
  let found = await store.run(runsSorted.sortedPart, args)
  for (let looked = MAX_SEARCHED; found.end && looked < most; looked += MAX_SEARCHED) {
    const { runs, end } = await store.run(runsSorted.sortedPart, { ...args, before: found.end.seq })
    found = { runs: runsSorted.mergeSorted(found.runs, runs, args), ...(end && { end }) }
  }
  return found
}

const cursorAfter = ({ seq, value }: SortedRun, { now, before, least, from }: Sorted): string =>
  [now, before, least, from, seq, encoded(value)].join('.')

/** Encodes a value for a cursor; a text gets the prefix `~`. */
const encoded = (value: SortValue): string =>
  typeof value === 'number' ? String(value) : `~${Buffer.from(value).toString('base64url')}`

const CURSOR = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.(-?\d{1,16}|~[\w-]{0,600})$/

const TEXTS: readonly RunSort[] = ['id', 'url', 'label']

/**
 * Parses a cursor.
 * @throws HomeportError `invalid_request` for text that is no cursor of this order.
 */
function placeOf(cursor: string, sort: RunSort): { sorted: Sorted; after: SortedRun } {
  const [, now, before, least, from, seq, text = ''] = CURSOR.exec(cursor) ?? []
  const value = text.startsWith('~') ? Buffer.from(text.slice(1), 'base64url').toString() : Number(text)
  const isOfSort = (typeof value === 'string') === TEXTS.includes(sort)
  // PostgreSQL refuses a text with a zero byte.
  if (text === '' || !isOfSort || String(value).includes('\0')) throw notOfSort(cursor, sort)
  const sorted = { now: Number(now), before: Number(before), least: Number(least), from: Number(from) }
  return { sorted, after: { seq: Number(seq), value } }
}

const notOfSort = (cursor: string, sort: RunSort): HomeportError =>
  new HomeportError('invalid_request', {
    problem: `cursor is ${JSON.stringify(cursor.slice(0, 80))}, which is not from a list sorted by ${sort}; send the cursor of the previous page with the same sort, or none for the first page.`,
  })
