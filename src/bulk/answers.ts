import type { Static } from 'typebox'
import { unreachable } from '../base/index.js'
import type { cancelWorkflowRuns, getBulkAction, listBulkOutcomes } from '../contract/bulk.js'
import { operations, type Store } from '../store/index.js'

/** Stored actions and outcomes in the words of the wire. */

type BulkActionRow = operations.bulk.BulkActionRow
type ItemRow = operations.bulkRead.ItemRow
/** The answer to a cancel. */
export type CancelAnswer = Static<(typeof cancelWorkflowRuns)['success']['body']>
type BulkAction = Static<(typeof getBulkAction)['success']['body']>
type OutcomeEntry = Static<(typeof listBulkOutcomes)['success']['body']>['outcomes'][number]

/** How many errors an answer spells out. */
const MOST_ERRORS = 100
/** How many ids of a list an action shows again. */
const MOST_IDS_SHOWN = 100

/** The counts by outcome; their sum is the number of decided items. */
export function outcomeCounts(row: BulkActionRow): BulkAction['outcomes'] {
  return {
    cancelled: row.cancelled,
    alreadyFinished: row.already_finished + row.already_cancelled,
    notFound: row.not_found,
    failed: row.failed,
  }
}

/**
 * The answer to a finished cancel: exactly `{cancelled}` when nothing went wrong. A run that somebody else had cancelled
 * before is no error: it is what the caller wants, and a repeated request must not complain of its own success.
 */
export async function cancelAnswer(store: Store, row: BulkActionRow, report: boolean): Promise<CancelAnswer> {
  const failed = operations.bulk.uncancelledItems(row)
  return {
    cancelled: row.cancelled,
    ...(failed > 0 ? { failed, errors: await firstErrors(store, row.seq) } : {}),
    ...(report ? { outcomes: outcomeCounts(row), actionId: row.action_id } : {}),
  }
}

async function firstErrors(store: Store, actionSeq: number): Promise<NonNullable<CancelAnswer['errors']>> {
  const from = { chunk: 0, position: 0 }
  const { items } = await pageOf(store, {
    actionSeq,
    from,
    limit: MOST_ERRORS,
    outcomes: ['alreadyFinished', 'failed'],
  })
  return items.map((item) => ({ workflowRunId: item.runId ?? '', error: errorOf(item) ?? '' }))
}

/** A full page of items, as far as there are enough; the store hands them out a chunk at a time. */
export async function pageOf(
  store: Store,
  args: operations.bulkRead.ItemPageArgs,
): Promise<operations.bulkRead.ItemPage> {
  const items: ItemRow[] = []
  let next: operations.bulkRead.ItemPlace | undefined = args.from
  while (next !== undefined && items.length < args.limit) {
    const rest = { ...args, from: next, limit: args.limit - items.length }
    const page: operations.bulkRead.ItemPage = await store.run(operations.bulkRead.items, rest)
    items.push(...page.items)
    next = page.next
  }
  return { items, next }
}

/** The selector for the records. A list of ids may be very long; all of them are in the outcomes. */
export function selectorForRecords(given: object): string {
  const { workflowRunIds: ids, ...others } = given as { workflowRunIds?: readonly string[] }
  if (ids === undefined || ids.length <= MOST_IDS_SHOWN) return JSON.stringify(given)
  return JSON.stringify({ ...others, workflowRunIds: ids.slice(0, MOST_IDS_SHOWN), workflowRunIdsTotal: ids.length })
}

/** An action with its progress. */
export function bulkAction(row: BulkActionRow): BulkAction {
  return {
    actionId: row.action_id,
    state: row.state,
    selector: JSON.parse(row.selector),
    createdBy: row.actor,
    matched: row.matched,
    done: operations.bulk.decidedItems(row),
    cancelled: row.cancelled,
    failed: operations.bulk.uncancelledItems(row),
    outcomes: outcomeCounts(row),
    createdAt: row.created_at,
    ...(row.finished_at === null ? {} : { finishedAt: row.finished_at }),
  }
}

/** One outcome. */
export function outcomeEntry(item: ItemRow): OutcomeEntry {
  const error = errorOf(item)
  return {
    ...(item.runId === undefined ? {} : { workflowRunId: item.runId }),
    outcome: item.outcome === 'alreadyCancelled' ? 'alreadyFinished' : item.outcome,
    ...(error === undefined ? {} : { error }),
  }
}

/** The stored outcomes that the outcomes of the wire stand for. */
export function storedOutcomes(
  wire: readonly OutcomeEntry['outcome'][] | undefined,
): readonly operations.bulkPack.ItemOutcome[] {
  if (wire === undefined) return operations.bulkPack.OUTCOMES
  return wire.flatMap((outcome) => (outcome === 'alreadyFinished' ? [outcome, 'alreadyCancelled' as const] : [outcome]))
}

function errorOf(item: ItemRow): string | undefined {
  switch (item.outcome) {
    case 'pending':
    case 'cancelled':
      return undefined
    case 'alreadyFinished':
      return `The run has already ended${item.state ? ` (${item.state})` : ''} and cannot be cancelled.`
    case 'alreadyCancelled':
      return 'The run had been cancelled before.'
    case 'notFound':
      return 'No run of this account has this id.'
    case 'failed':
      return "The run could not be cancelled because of a fault on our side. Repeat the request; the server's log has the details."
    default:
      return unreachable(item.outcome)
  }
}
