/** The order of the list of runs. Only the browser can filter and sort by the reasons why runs wait. */
import { RUN_SORTS, type RunSort } from '../../../../src/contract/workflow/run-order.js'
import { type Order, orderAt, sorted } from '../../components/sorting.js'
import type { RunSearch } from './search.js'
import { ADVICE, type Reason, type Run } from './words.js'

/** The columns to sort by: those of the server, and the reason why a run waits. */
const RUN_ORDERS = [...RUN_SORTS, 'waits'] as const

/** The order of an address; `undefined`: newest first. */
export const runOrderOf = ({ sort }: RunSearch): Order<(typeof RUN_ORDERS)[number]> | undefined =>
  orderAt(sort, RUN_ORDERS)

/** Whether the browser sorts, and so only the loaded rows. By all other columns, the server sorts. */
export const isSortedByBrowser = (search: RunSearch): boolean => runOrderOf(search)?.by === 'waits'

/** The order as parameters of the log of runs. */
export function orderQuery(search: RunSearch): { sort?: RunSort; direction?: 'asc' | 'desc' } {
  const { by, direction } = runOrderOf(search) ?? {}
  return by === undefined || direction === undefined || by === 'waits' ? {} : { sort: by, direction }
}

/** Orders to choose by name, because a phone shows no headings, and the end of a run has no column. */
export const NAMED_ORDERS = [
  { value: 'created', label: 'Oldest first' },
  { value: '-ended', label: 'Last ended first' },
  { value: '-duration', label: 'Longest first' },
  { value: 'duration', label: 'Shortest first' },
  { value: 'state', label: 'By state' },
]

/** The first reason why a run waits, in words; empty if it does not wait. */
export function whyOf({ because = [] }: Pick<Run, 'because'>): string {
  const [first] = because
  if (first === undefined) return ''
  return because.length > 1 ? `${ADVICE[first.kind].title} +${because.length - 1}` : ADVICE[first.kind].title
}

/** Reasons to wait, as choices of the filter. */
export const WAIT_CHOICES = Object.entries(ADVICE).map(([value, { title }]) => ({ value, label: title }))

/** Whether a run, or one of its branches, waits for a reason of this kind. */
const waitsFor = ({ because = [] }: Run, kind: string): boolean =>
  because.some((reason: Reason) => reason.kind === kind)

/** The rows that pass the browser's filter, in the browser's order if it sorts. */
export function filterAndSort(rows: readonly Run[], search: RunSearch): readonly Run[] {
  const { waits } = search
  const passing = waits === undefined ? rows : rows.filter((run) => waitsFor(run, waits))
  return isSortedByBrowser(search) ? sorted(passing, runOrderOf(search), (run) => whyOf(run) || undefined) : passing
}
