import type { Static } from 'typebox'
import { unreachable } from '../../base/index.js'
import type { cancelWorkflowRuns, getBulkAction, listBulkOutcomes } from '../../contract/bulk/actions.js'
import type { BulkPreview } from '../../contract/bulk/answers.js'
import type { Store } from '../../store/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import type { FixedSet } from '../selector/fixed-set.js'
import * as bulkActionTransactions from '../transactions/bulk-action.js'
import * as bulkPack from '../transactions/bulk-pack.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { KINDS } from '../worker/kinds.js'

/** Stored actions and outcomes in wire format. */

type BulkActionRow = bulkActionTransactions.BulkActionRow
type ItemRow = bulkRead.ItemRow
/** The body that answers a cancel. */
export type CancelAnswer = Static<(typeof cancelWorkflowRuns)['success']['body']>
type BulkAction = Static<(typeof getBulkAction)['success']['body']>
type OutcomeEntry = Static<(typeof listBulkOutcomes)['success']['body']>['outcomes'][number]

/** Errors that an answer lists. */
const MAX_ERRORS = 100
/** Ids that an action shows of a list. */
const MAX_IDS_SHOWN = 100
/** Characters that it shows of all its lists together. */
const MAX_CHARACTERS_SHOWN = 16_384

/** Counts by outcome; they add up to the number of decided items. */
function outcomeCounts(row: BulkActionRow): BulkAction['outcomes'] {
  return {
    [KINDS[row.kind].successOutcome]: row.succeeded,
    alreadyFinished: row.already_finished + row.already_cancelled,
    notFound: row.not_found,
    failed: row.failed,
    ...(row.skipped > 0 && { skipped: row.skipped }),
  }
}

/**
 * The answer to a finished cancel: exactly `{cancelled}` when nothing went wrong. A run that another request cancelled
 * before is no error: the caller has what it wants, and a retry must not fail because of its own success. An aborted
 * action says so.
 */
export async function cancelAnswer(store: Store, row: BulkActionRow, report: boolean): Promise<CancelAnswer> {
  const failed = bulkActionTransactions.missedItems(row)
  const aborted = row.state === 'aborted'
  return {
    cancelled: row.succeeded,
    ...(failed > 0 ? { failed, errors: await firstErrors(store, row) } : {}),
    ...(report ? { outcomes: cancelCounts(row) } : {}),
    ...(report || aborted ? { actionId: row.action_id } : {}),
    ...(report && row.succeeded > 0 ? { undo: undoPathOf(row.action_id) } : {}),
    ...(aborted ? { state: 'aborted' as const, skipped: row.skipped } : {}),
    ...unreadableIn(row),
  }
}

/** The number of items that a condition could not be tested on, as the field `unreadable`; no field if it is NULL. */
export const unreadableIn = ({ unreadable }: Pick<BulkActionRow, 'unreadable'>): { unreadable?: number } =>
  unreadable === null ? {} : { unreadable }

/** The path that undoes a cancel. */
const undoPathOf = (actionId: string): string => `/v2/workflows/bulkActions/${actionId}/undo`

/** Whether an action cancels something, so that it can be undone. */
const isCancel = ({ kind }: Pick<BulkActionRow, 'kind'>): boolean => KINDS[kind].successOutcome === 'cancelled'

/** The header with the path that undoes a cancel. It is a header because the bodies of answers to a cancel are fixed. */
export const undoHeader = (action: BulkActionRow): Readonly<Record<string, string>> =>
  isCancel(action) && action.matched > 0 ? { 'Homeport-Undo': undoPathOf(action.action_id) } : {}

function cancelCounts(row: BulkActionRow): CancelAnswer['outcomes'] {
  return { ...outcomeCounts(row), cancelled: row.succeeded }
}

async function firstErrors(store: Store, row: BulkActionRow): Promise<NonNullable<CancelAnswer['errors']>> {
  const pageArgs = {
    from: { chunk: 0, position: 0 },
    limit: MAX_ERRORS,
    outcomes: ['alreadyFinished', 'failed', 'fenced'] as const,
  }
  const { items } = await pageOf(store, row, pageArgs)
  return items.map((item) => ({ workflowRunId: item.id ?? '', error: errorOf(row, item) ?? '' }))
}

/** A page of items, full if there are enough; the store returns at most one chunk at a time. */
export async function pageOf(
  store: Store,
  row: BulkActionRow,
  pageArgs: Pick<bulkRead.ItemPageArgs, 'from' | 'limit' | 'outcomes'>,
): Promise<bulkRead.ItemPage> {
  const undecided = row.state === 'aborted' ? ('skipped' as const) : ('pending' as const)
  const args = { ...pageArgs, actionSeq: row.seq, itemType: KINDS[row.kind].itemType, undecided }
  const items: ItemRow[] = []
  let next: bulkRead.ItemPlace | undefined = args.from
  while (next !== undefined && items.length < args.limit) {
    const rest = { ...args, from: next, limit: args.limit - items.length }
    const page: bulkRead.ItemPage = await store.run(bulkRead.items, rest)
    items.push(...page.items)
    next = page.next
  }
  return { items, next }
}

/**
 * JSON of a selector for the records. Long lists keep only their beginning and their length, because each batch rewrites
 * the row, and a page of actions may have a thousand rows. The outcomes have every id.
 */
export function selectorForRecords(given: object): string {
  let characters = 0
  const isShown = (value: unknown): boolean => {
    characters += String(value).length
    return characters <= MAX_CHARACTERS_SHOWN
  }
  const members = Object.entries(given).flatMap(([name, value]): [string, unknown][] => {
    if (!Array.isArray(value)) return [[name, value]]
    const shown = value.slice(0, MAX_IDS_SHOWN).filter(isShown)
    return shown.length === value.length
      ? [[name, value]]
      : [
          [name, shown],
          [`${name}Total`, value.length],
        ]
  })
  return JSON.stringify(Object.fromEntries(members))
}

/** An action with its progress in wire format. */
export function bulkAction(row: BulkActionRow): BulkAction {
  return {
    actionId: row.action_id,
    kind: row.kind,
    state: row.state,
    selector: JSON.parse(row.selector),
    ...(row.reason !== null && { reason: row.reason }),
    ...(row.rate_per_second !== null && { ratePerSecond: row.rate_per_second }),
    ...(row.fence_until !== null && { fenceUntil: row.fence_until }),
    createdBy: row.actor,
    matched: row.matched,
    ...unreadableIn(row),
    done: bulkActionTransactions.decidedItems(row),
    ...(isCancel(row) && { cancelled: row.succeeded }),
    failed: bulkActionTransactions.missedItems(row),
    outcomes: outcomeCounts(row),
    createdAt: row.created_at,
    ...(row.paused_at !== null && { pausedAt: row.paused_at }),
    ...(row.finished_at !== null && { finishedAt: row.finished_at }),
    ...(isCancel(row) && row.finished_at !== null && row.succeeded > 0 && { undo: undoPathOf(row.action_id) }),
  }
}

/** One outcome in wire format. */
export function outcomeEntry(row: BulkActionRow, item: ItemRow): OutcomeEntry {
  const error = errorOf(row, item)
  return {
    ...(item.id !== undefined && { [idMember(row, item)]: item.id }),
    outcome: onWire(row, item.outcome),
    ...(error !== undefined && { error }),
  }
}

/** An id that matches nothing is shown as the id type that was asked for. */
function idMember(row: BulkActionRow, { state }: ItemRow): 'workflowRunId' | 'messageId' | 'dlqId' {
  if (state === undefined && isOfDeadLetters(row)) return 'dlqId'
  return KINDS[row.kind].itemType === 'runs' ? 'workflowRunId' : 'messageId'
}

/** Whether the items are dead letters. */
const isOfDeadLetters = ({ kind }: BulkActionRow): boolean =>
  !['cancelled', 'undone', 'paused', 'unpaused'].includes(KINDS[kind].successOutcome)

type WireOutcome = OutcomeEntry['outcome']

function onWire(row: BulkActionRow, outcome: ItemRow['outcome']): WireOutcome {
  switch (outcome) {
    case 'succeeded':
      return KINDS[row.kind].successOutcome
    case 'alreadyCancelled':
      return 'alreadyFinished'
    case 'fenced':
    case 'notKept':
      return 'failed'
    case 'pending':
    case 'alreadyFinished':
    case 'notFound':
    case 'failed':
    case 'skipped':
      return outcome
    default:
      return unreachable(outcome)
  }
}

/** The stored outcomes of wire outcomes. */
export function storedOutcomes(
  row: BulkActionRow,
  wire: readonly WireOutcome[] | undefined,
): readonly bulkPack.ItemOutcome[] {
  if (wire === undefined) return bulkPack.OUTCOMES
  return bulkPack.OUTCOMES.filter((outcome) => wire.includes(onWire(row, outcome)))
}

function errorOf(row: BulkActionRow, item: ItemRow): string | undefined {
  switch (item.outcome) {
    case 'pending':
    case 'succeeded':
      return undefined
    case 'alreadyFinished':
      return finishedError(row, item)
    case 'alreadyCancelled':
      return `The ${itemNoun(row)} was already cancelled.`
    case 'notFound':
      return `No ${isOfDeadLetters(row) ? 'dead letter' : itemNoun(row)} of this account has this id.`
    case 'skipped':
      return `The action was aborted before it reached this ${itemNoun(row)}.`
    case 'fenced':
      return 'The fence of a bulk cancel blocks this run from starting again.'
    case 'notKept':
      return 'An older version of Homeport cancelled it and did not store what is needed to bring a run back.'
    case 'failed':
      return `The ${itemNoun(row)} could not be ${KINDS[row.kind].successOutcome} because of an internal error. Repeat the request; the server's log has the details.`
    default:
      return unreachable(item.outcome)
  }
}

const itemNoun = ({ kind }: BulkActionRow): string => (KINDS[kind].itemType === 'runs' ? 'run' : 'message')

function finishedError(row: BulkActionRow, { state, dlqId, failureState }: ItemRow): string {
  if (row.kind === 'retryFailureCallbacks' && dlqId !== undefined) {
    return failureState === undefined
      ? 'The run has no failure function.'
      : `Only a failure function that has failed is called again; this one is ${failureState}.`
  }
  if (KINDS[row.kind].successOutcome === 'undone')
    return `The ${itemNoun(row)} is not cancelled, or not by this action${state ? ` (${state})` : ''}.`
  if (state === 'RUN_STARTED') return `The run ${row.kind === 'pauseRuns' ? 'is already paused' : 'is not paused'}.`
  if (isOfDeadLetters(row)) return `The ${itemNoun(row)} is no longer among the dead letters.`
  return `The ${itemNoun(row)} has already ended${state ? ` (${state})` : ''} and cannot be ${KINDS[row.kind].successOutcome}.`
}

/** The answer to a dry run. */
export type PreviewAnswer = Static<typeof BulkPreview>

type PreviewRow = bulkRead.PreviewRow

/** Describes a set: the number of items the action could be applied to, and the first of them. */
export async function previewAnswer(
  store: Store,
  kind: BulkKindName,
  { matched, first, unreadable }: FixedSet,
): Promise<PreviewAnswer> {
  const { itemType } = KINDS[kind]
  const rows = await store.run(bulkRead.preview, { itemType, seqs: first })
  return {
    matched,
    ...(unreadable !== undefined && { unreadable }),
    sample: rows.map(({ id }) => id),
    preview: rows.map((row) => previewOf(itemType, row)),
  }
}

function previewOf(itemType: 'runs' | 'messages', row: PreviewRow): PreviewAnswer['preview'][number] {
  const labels = row.labels.split('|').filter((label) => label !== '')
  return {
    ...(itemType === 'runs' ? { workflowRunId: row.id } : { messageId: row.id }),
    ...(row.dlq_id !== null && { dlqId: row.dlq_id }),
    url: row.url,
    ...(labels.length > 0 && { labels }),
    createdAt: row.created_at,
  }
}
