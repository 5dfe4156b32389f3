import { HomeportError } from '../../contract/errors/errors.js'
import { type Call, type Caller, type Reply, reply } from '../../http/index.js'
import type { LargeCancel } from '../../queue/index.js'
import { ageBounds, compileConditions } from '../selector/conditions.js'
import { type Bounds, type FixedSet, SAMPLE_ITEMS } from '../selector/fixed-set.js'
import { Refinement } from '../selector/refine.js'
import { PAGE_ITEMS, selectMessages } from '../selector/select-messages.js'
import { selectRuns } from '../selector/select-runs.js'
import { parseSelector, type Selector, type Target } from '../selector/selector.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import {
  type CancelAnswer,
  cancelAnswer,
  previewAnswer,
  selectorForRecords,
  undoHeader,
  unreadableIn,
} from './answers.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'
import { resolveSavedCancel } from './saved.js'

type Answer = CancelAnswer | Reply

/** A parsed cancel with its selector for the records and the function that fixes its set. */
interface Cancel {
  readonly caller: Caller
  readonly selector: Selector
  readonly records: string
  readonly select: () => Promise<FixedSet>
}

/** Cancels many runs. Continues even if the caller disconnects. */
export async function cancelRuns(
  deps: RouteDeps,
  { caller, body, target, signal }: Pick<Call, 'caller' | 'body' | 'target' | 'signal'>,
): Promise<Answer> {
  const queryStart = target.indexOf('?')
  const given = { body, query: queryStart < 0 ? '' : target.slice(queryStart + 1) }
  const { body: selector, query } = await resolveSavedCancel(deps, caller, given)
  return startOrPreview(deps, selectionOf(deps, caller, parseCancel(deps, selector, query), signal))
}

/** Starts a cancel of runs through the operation that starts any kind of action. */
export async function startCancel(deps: RouteDeps, caller: Caller, given: object, signal: AbortSignal): Promise<Reply> {
  const cancel = selectionOf(deps, caller, parseCancel(deps, given, ''), signal)
  if (cancel.selector.mode !== 'dryRun') {
    return answerLater(deps, await storeCancel(deps, cancel))
  }
  return reply(200, await previewAnswer(deps.store, 'cancelRuns', await cancel.select()))
}

async function startOrPreview(deps: RouteDeps, cancel: Cancel): Promise<Answer> {
  const { mode, report } = cancel.selector
  if (mode === 'dryRun') {
    const { preview: _, ...found } = await previewAnswer(deps.store, 'cancelRuns', await cancel.select())
    return { cancelled: 0, ...found }
  }
  const action = await storeCancel(deps, cancel)
  return mode === 'async' ? answerLater(deps, action) : answerNow(deps, action, report)
}

/** @throws HomeportError when the selector of active runs is not valid. */
export function parseCancel({ clock }: RouteDeps, body: unknown, query: string): Selector {
  const parsed = parseSelector(body, query)
  if ('problem' in parsed) throw new HomeportError('invalid_request', parsed)
  const { fenceUntil } = parsed.selector
  if (fenceUntil === undefined || fenceUntil > clock.now()) return parsed.selector
  const problem = `\`fenceUntil\` must lie in the future; found ${fenceUntil}. Nothing was cancelled.`
  throw new HomeportError('invalid_request', { problem })
}

/** Collaborators that fix a set. */
export interface Selecting extends Pick<RouteDeps, 'store'> {
  readonly clock: Pick<RouteDeps['clock'], 'now'>
}

/** A cancel of active runs whose `select` fixes its set. */
export function selectionOf(deps: Selecting, caller: Caller, selector: Selector, signal: AbortSignal): Cancel {
  const at = deps.clock.now()
  const compiled = compileConditions('runs', selector.conditions)
  const refinement =
    compiled && new Refinement(deps.store, compiled, at, selector.mode === 'dryRun' ? signal : undefined)
  const target = withAge(selector, at)
  const select = async () => selectRuns(deps.store, { target, refinement, ...(await boundsOf(deps, caller, selector)) })
  return { caller, selector, records: selectorForRecords(selector.given), select }
}

/** Adds the ages to the filter, as bounds on the time of creation. */
function withAge({ target, ages }: Selector, at: number): Target {
  if (target.kind === 'named') return target
  const { after, before } = ageBounds(ages, at)
  const { createdAfter = Number.NEGATIVE_INFINITY, createdBefore = Number.POSITIVE_INFINITY } = target.filter
  const filter = {
    ...target.filter,
    ...(after !== undefined && { createdAfter: Math.max(after, createdAfter) }),
    ...(before !== undefined && { createdBefore: Math.min(before, createdBefore) }),
  }
  return { kind: 'matching', filter }
}

async function boundsOf({ store }: Selecting, { accountId }: Caller, { most, mode }: Selector): Promise<Bounds> {
  const bound = await store.run(bulkSelect.newest, {})
  return { accountId, bound, most, sample: mode === 'dryRun' ? SAMPLE_ITEMS : 0 }
}

function storeCancel(deps: RouteDeps, { caller, selector, records, select }: Cancel) {
  const { target, reason, ratePerSecond, fenceUntil: until } = selector
  const fence = until === undefined ? undefined : { target, until }
  return createAction(deps, caller, { kind: 'cancelRuns', selector: records, reason, ratePerSecond, fence }, select)
}

async function answerNow(
  { store, worker }: RouteDeps,
  action: bulkAction.BulkActionRow,
  report: boolean,
): Promise<Answer> {
  const ended = await worker.finish(action)
  if (ended.state !== 'paused') {
    return reply(200, await cancelAnswer(store, ended, report), undoHeader(ended))
  }
  // It may stay paused for days, so the caller gets the id to look it up.
  return reply(202, { actionId: ended.action_id, matched: ended.matched, ...unreadableIn(ended), state: 'paused' })
}

/** Leaves empty members of a filter out of the records. */
function nonEmpty(filter: object): object {
  return Object.fromEntries(
    Object.entries(filter).filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0)),
  )
}

/**
 * Cancels messages for the queue when there are more than fit into one transaction. @returns how many; `undefined` when
 * they fit.
 * @throws HomeportError `bulk_action_interrupted` when the action continues later, or was paused.
 */
export async function cancelManyMessages(
  deps: RouteDeps,
  caller: Caller,
  { filter, most }: Parameters<LargeCancel>[1],
): Promise<number | undefined> {
  const bounds = { accountId: caller.accountId, most, at: deps.clock.now() }
  const set = await selectMessages(deps.store, bounds, filter)
  if (set.matched <= PAGE_ITEMS) return undefined
  const request = { kind: 'cancelMessages' as const, selector: JSON.stringify(nonEmpty(filter)) }
  const stored = await createAction(deps, caller, request, async () => set)
  const ended = await deps.worker.finish(stored)
  if (ended.state !== 'paused') return ended.succeeded
  throw new HomeportError('bulk_action_interrupted', { actionId: ended.action_id, reason: 'It was paused.' })
}
