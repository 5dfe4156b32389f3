import { HomeportError } from '../../contract/errors/errors.js'
import { type Call, type Caller, type Reply, reply } from '../../http/index.js'
import type { LargeCancel } from '../../queue/index.js'
import { type Bounds, type FixedSet, SAMPLE_ITEMS } from '../selector/fixed-set.js'
import { PAGE_ITEMS, selectMessages } from '../selector/select-messages.js'
import { selectRuns } from '../selector/select-runs.js'
import { parseSelector, type Selector } from '../selector/selector.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import { type CancelAnswer, cancelAnswer, previewAnswer, selectorForRecords } from './answers.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'

type Answer = CancelAnswer | Reply

/** A cancel that is understood, with how its set is fixed and what the records say of it. */
interface Cancel {
  readonly caller: Caller
  readonly selector: Selector
  readonly records: string
  readonly fix: () => Promise<FixedSet>
}

/** Cancels many runs. The work does not look at whether the caller is still there: what was asked for is done. */
export async function cancelRuns(
  deps: RouteDeps,
  { caller, body, target }: Pick<Call, 'caller' | 'body' | 'target'>,
): Promise<Answer> {
  const question = target.indexOf('?')
  const query = question < 0 ? '' : target.slice(question + 1)
  return carryOut(deps, understood(deps, caller, understandCancel(deps, body, query)))
}

/** A cancel of runs that is started like an action of any kind. */
export async function startCancel(deps: RouteDeps, caller: Caller, given: object): Promise<Reply> {
  const cancel = understood(deps, caller, understandCancel(deps, given, ''))
  if (cancel.selector.mode !== 'dryRun') return answerLater(deps, await storeCancel(deps, cancel))
  return reply(200, await previewAnswer(deps.store, 'cancelRuns', await cancel.fix()))
}

async function carryOut(deps: RouteDeps, cancel: Cancel): Promise<Answer> {
  const { mode, report } = cancel.selector
  if (mode === 'dryRun') {
    const { matched, sample } = await previewAnswer(deps.store, 'cancelRuns', await cancel.fix())
    return { cancelled: 0, matched, sample }
  }
  const action = await storeCancel(deps, cancel)
  return mode === 'async' ? answerLater(deps, action) : answerNow(deps, action, report)
}

function understandCancel({ clock }: RouteDeps, body: unknown, query: string): Selector {
  const parsed = parseSelector(body, query)
  if ('problem' in parsed) throw new HomeportError('invalid_request', parsed)
  const { fenceUntil } = parsed.selector
  if (fenceUntil === undefined || fenceUntil > clock.now()) return parsed.selector
  const problem = `\`fenceUntil\` must lie in the future; found ${fenceUntil}. Nothing was cancelled.`
  throw new HomeportError('invalid_request', { problem })
}

function understood(deps: RouteDeps, caller: Caller, selector: Selector): Cancel {
  const { target } = selector
  const fix = async () => selectRuns(deps.store, { target, ...(await boundsOf(deps, caller, selector)) })
  return { caller, selector, records: selectorForRecords(selector.given), fix }
}

async function boundsOf({ store }: RouteDeps, { accountId }: Caller, { most, mode }: Selector): Promise<Bounds> {
  const bound = await store.run(bulkSelect.newest, {})
  return { accountId, bound, most, sample: mode === 'dryRun' ? SAMPLE_ITEMS : 0 }
}

function storeCancel(deps: RouteDeps, { caller, selector, records, fix }: Cancel) {
  const { target, reason, ratePerSecond, fenceUntil: until } = selector
  const fence = until === undefined ? undefined : { target, until }
  return createAction(deps, caller, { kind: 'cancelRuns', selector: records, reason, ratePerSecond, fence }, fix)
}

async function answerNow(
  { store, worker }: RouteDeps,
  action: bulkAction.BulkActionRow,
  report: boolean,
): Promise<Answer> {
  const ended = await worker.finish(action)
  if (ended.state !== 'paused') return cancelAnswer(store, ended, report)
  // It may stay paused for days: the caller is told where to look instead of waiting.
  return reply(202, { actionId: ended.action_id, matched: ended.matched, state: 'paused' })
}

/** Members of a filter that select everything are left out of the records. */
function givenOf(filter: object): object {
  return Object.fromEntries(
    Object.entries(filter).filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0)),
  )
}

/**
 * Cancels messages for the queue when they are more than fit into one transaction, and answers how many.
 * @throws HomeportError `bulk_action_interrupted` when the action goes on later, or was paused.
 */
export async function cancelManyMessages(
  deps: RouteDeps,
  caller: Caller,
  { filter, most }: Parameters<LargeCancel>[1],
): Promise<number | undefined> {
  const bounds = { accountId: caller.accountId, most, at: deps.clock.now() }
  const set = await selectMessages(deps.store, bounds, filter)
  if (set.matched <= PAGE_ITEMS) return undefined
  const wanted = { kind: 'cancelMessages' as const, selector: JSON.stringify(givenOf(filter)) }
  const stored = await createAction(deps, caller, wanted, async () => set)
  const ended = await deps.worker.finish(stored)
  if (ended.state !== 'paused') return ended.succeeded
  throw new HomeportError('bulk_action_interrupted', { actionId: ended.action_id, reason: 'It was paused.' })
}
