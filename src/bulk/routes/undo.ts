import { undoBulkAction, undoCancelOfMessage, undoCancelOfRun } from '../../contract/bulk/undo.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Caller, type Reply, type Route, reply, route } from '../../http/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import type { UndoClock } from '../../workflow/transactions/runs-undo.js'
import { timesOfCancel } from '../selector/cancel-times.js'
import type { FixedSet } from '../selector/fixed-set.js'
import { selectCancelledBy, selectCancelledNamed } from '../selector/select-cancelled.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'
import type { UndoSettings } from '../transactions/bulk-undo.js'
import { KINDS } from '../worker/kinds.js'
import { outcomeEntry, pageOf, previewAnswer, selectorForRecords } from './answers.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'

/** The kinds that undo a cancel. */
export type UndoKind = Extract<BulkKindName, 'undoCancelRuns' | 'undoCancelMessages'>

/** A request to undo a cancel. The selector was checked against its schema. */
export interface UndoRequest {
  readonly kind: UndoKind
  readonly selector?: Readonly<Record<string, unknown>>
  readonly clock?: UndoClock
  readonly reason?: string
  readonly ratePerSecond?: number
  readonly fenceUntil?: number
  readonly dryRun?: boolean
}

/** The routes that undo a whole cancel by its action, or the cancel of one run or message. */
export function undoRoutes(deps: RouteDeps): Route[] {
  return [
    route(undoBulkAction, async ({ caller, params: { actionId }, body }) => {
      const cancel = await cancelOf(deps, caller, actionId)
      const kind = cancel.kind === 'cancelRuns' ? 'undoCancelRuns' : 'undoCancelMessages'
      return startUndo(deps, caller, { ...body, kind, selector: { actionId } })
    }),
    route(undoCancelOfRun, async ({ caller, params: { workflowRunId }, body }) => {
      const actionId = await undoOne(deps, caller, { what: 'run', id: workflowRunId }, body ?? {})
      return { workflowRunId, workflowState: 'RUN_STARTED' as const, actionId }
    }),
    route(undoCancelOfMessage, async ({ caller, params: { messageId }, body }) => {
      const actionId = await undoOne(deps, caller, { what: 'message', id: messageId }, body ?? {})
      return { messageId, actionId }
    }),
  ]
}

/** Starts an undo. A dry run answers what it would bring back. */
export async function startUndo(deps: RouteDeps, caller: Caller, request: UndoRequest): Promise<Reply> {
  if (request.fenceUntil !== undefined) throw invalid('`fenceUntil` is for `cancelRuns` only.')
  const { settings, select } = await plan(deps, caller, request)
  if (request.dryRun) return reply(200, await previewAnswer(deps.store, request.kind, await select()))
  return answerLater(deps, await store(deps, caller, request, settings, select))
}

type Select = () => Promise<FixedSet>

function store(deps: RouteDeps, caller: Caller, request: UndoRequest, settings: UndoSettings, select: Select) {
  const { kind, selector = {}, reason, ratePerSecond } = request
  const action = { kind, selector: selectorForRecords(selector), settings: JSON.stringify(settings) }
  return createAction(deps, caller, { ...action, reason, ratePerSecond }, select)
}

async function plan(
  deps: RouteDeps,
  caller: Caller,
  { kind, selector = {}, clock = 'original' }: UndoRequest,
): Promise<{ settings: UndoSettings; select: Select }> {
  const { accountId } = caller
  const { itemType } = KINDS[kind]
  const bounds = { accountId, itemType }
  const { actionId, workflowRunIds, messageIds } = selector
  const ids = workflowRunIds ?? messageIds
  if ((actionId === undefined) === (ids === undefined)) {
    const name = itemType === 'runs' ? 'workflowRunIds' : 'messageIds'
    throw invalid(`The selector must have either \`actionId\` or \`${name}\`. Nothing was brought back.`)
  }
  if (ids !== undefined) {
    const list = Array.isArray(ids) ? ids.map(String) : [String(ids)]
    return { settings: { clock }, select: () => selectCancelledNamed(deps.store, bounds, list) }
  }
  const row = await cancelOf(deps, caller, String(actionId))
  if (KINDS[row.kind].itemType !== itemType) throw invalid(`The action ${row.action_id} cancelled no ${itemType}.`)
  const stored = { seq: row.seq, from: row.created_at, to: row.finished_at ?? 0 }
  const cancel = itemType === 'messages' ? await timesOfCancel(deps.store, accountId, stored) : stored
  return { settings: { clock, cancel }, select: () => selectCancelledBy(deps.store, bounds, cancel) }
}

const invalid = (problem: string) => new HomeportError('invalid_request', { problem })

/** @throws HomeportError unless the action is a cancel that has ended. */
async function cancelOf({ store }: RouteDeps, { accountId }: Caller, actionId: string): Promise<BulkActionRow> {
  const row = await store.run(bulkRead.action, { accountId, actionId })
  if (!row) throw new HomeportError('bulk_action_not_found', { actionId })
  if (row.kind !== 'cancelRuns' && row.kind !== 'cancelMessages') {
    throw invalid(`The action ${actionId} is a ${row.kind}. Only \`cancelRuns\` and \`cancelMessages\` can be undone.`)
  }
  if (row.finished_at === null)
    throw new HomeportError('bulk_action_refused', { actionId, state: row.state, act: 'undone' })
  return row
}

type HowToUndo = Pick<UndoRequest, 'clock' | 'reason'>

interface One {
  readonly what: 'run' | 'message'
  readonly id: string
}

const notFound = ({ what, id }: One) =>
  what === 'run'
    ? new HomeportError('run_not_found', { runId: id })
    : new HomeportError('message_not_found', { messageId: id })

/** Brings one run or message back, waits for it, and answers the id of the action that did it. */
async function undoOne(deps: RouteDeps, caller: Caller, one: One, { clock, reason }: HowToUndo): Promise<string> {
  const request: UndoRequest = {
    ...(one.what === 'run'
      ? { kind: 'undoCancelRuns', selector: { workflowRunIds: [one.id] } }
      : { kind: 'undoCancelMessages', selector: { messageIds: [one.id] } }),
    ...(clock !== undefined && { clock }),
    ...(reason !== undefined && { reason }),
  }
  const { settings, select } = await plan(deps, caller, request)
  const set = await select()
  if (set.absent.length > 0) throw notFound(one)
  if (set.matched === 0) throw new HomeportError('undo_refused', { ...one, problem: 'It is not cancelled.' })
  const ended = await deps.worker.finish(await store(deps, caller, request, settings, async () => set))
  if (ended.succeeded === 1) return ended.action_id
  if (ended.state === 'paused') {
    throw new HomeportError('bulk_action_interrupted', { actionId: ended.action_id, reason: 'It was paused.' })
  }
  throw new HomeportError('undo_refused', { ...one, problem: await problemOf(deps, ended) })
}

async function problemOf({ store }: RouteDeps, row: BulkActionRow): Promise<string> {
  const outcomes = ['alreadyFinished', 'failed', 'fenced', 'notKept'] as const
  const { items } = await pageOf(store, row, { from: { chunk: 0, position: 0 }, limit: 1, outcomes })
  const [item] = items
  return (item && outcomeEntry(row, item).error) ?? 'The action was aborted.'
}
