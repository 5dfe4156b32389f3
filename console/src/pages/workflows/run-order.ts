/** Filters and orders of runs that the browser applies to the rows it has: no index of the server would bound their cost. */
import { type Order, orderAt, sorted } from '../../components/sorting.js'
import type { RunSearch } from './search.js'
import { ADVICE, lastedMs, type Reason, RUN_WORDS, type Run } from './words.js'

/** The columns to sort by. */
export const RUN_ORDERS = ['state', 'run', 'url', 'label', 'now', 'lasted', 'made'] as const

/** The order of an address; `undefined`: newest first, as the server lists them. */
export const runOrderOf = ({ sort }: RunSearch): Order | undefined => orderAt(sort, RUN_ORDERS)

/** Whether the browser sorts the rows that it has. Newest first is the order of the server, which sorts all runs. */
export function isSortedHere(search: RunSearch): boolean {
  const order = runOrderOf(search)
  return order !== undefined && !(order.by === 'made' && order.direction === 'desc')
}

/** The first reason why a run waits, in words; empty if it does not wait. */
export function whyOf({ because = [] }: Pick<Run, 'because'>): string {
  const [first] = because
  if (first === undefined) return ''
  return because.length > 1 ? `${ADVICE[first.kind].title} +${because.length - 1}` : ADVICE[first.kind].title
}

/** What can be waited for, to filter by. */
export const WAIT_CHOICES = Object.entries(ADVICE).map(([value, { title }]) => ({ value, label: title }))

/** Whether a run waits for this, with one of its branches. */
const waitsFor = ({ because = [] }: Run, kind: string): boolean =>
  because.some((reason: Reason) => reason.kind === kind)

/** The rows that pass the filters of the browser, in the order of the address. `nowMs`: how long active runs took. */
export function arranged(rows: readonly Run[], search: RunSearch, nowMs: number): readonly Run[] {
  const { waits } = search
  const passing = waits === undefined ? rows : rows.filter((run) => waitsFor(run, waits))
  return sorted(passing, runOrderOf(search), (run, key) => sortedBy(run, key, nowMs))
}

function sortedBy(run: Run, key: string, nowMs: number): string | number | undefined {
  switch (key) {
    case 'state':
      return RUN_WORDS[run.workflowState].title
    case 'run':
      return run.workflowRunId
    case 'url':
      return run.workflowUrl
    case 'label':
      return run.labels?.join(', ')
    case 'now':
      return whyOf(run) || undefined
    case 'lasted':
      return lastedMs(run, nowMs)
    default:
      return run.workflowRunCreatedAt
  }
}
