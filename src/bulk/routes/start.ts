import type { IncomingHttpHeaders } from 'node:http'
import type { Static } from 'typebox'
import { unreachable } from '../../base/index.js'
import { startBulkAction } from '../../contract/bulk/actions.js'
import { type ActiveRunsKind, BULK_SELECTORS, ITEMS_OF, type SelectingKind } from '../../contract/bulk/selectors.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MAX_IDS } from '../../contract/request-limits.js'
import {
  type Call,
  type Caller,
  type Checker,
  compileChecker,
  type Reply,
  type Route,
  reply,
  route,
} from '../../http/index.js'
import { readSelection, revisionOf } from '../../queue/index.js'
import { ANY_MESSAGE, type MessageFilter } from '../../queue/transactions/messages-filter.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import { deadRunSelectorOf, overridesOf, settingsIn } from '../../workflow/index.js'
import type { DeadRunFilter } from '../../workflow/transactions/runs-dead.js'
import { type AgeBounds, ageBounds, compileConditions } from '../selector/conditions.js'
import { conditionsProblem, foreignCondition, splitConditions } from '../selector/conditions-of-kinds.js'
import type { FixedSet } from '../selector/fixed-set.js'
import { Refinement } from '../selector/refine.js'
import {
  type Bounds,
  selectDeadLetters,
  selectDeadRuns,
  selectFailedCallbacks,
  selectMessages,
} from '../selector/select-messages.js'
import { parseSelector } from '../selector/selector.js'
import { NON_FILTER_FIELDS } from '../selector/selector-fields.js'
import { previewAnswer, selectorForRecords } from './answers.js'
import { startCancel } from './cancel.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'
import { startPause } from './pause.js'
import { resolveSaved, savedRoutes } from './saved.js'
import { startUndo, type UndoKind } from './undo.js'

type StartBody = Static<(typeof startBulkAction)['body']['schema']>
/** Kinds whose selectors a schema describes. */
type PlainKind = Exclude<BulkKindName, ActiveRunsKind | UndoKind>
type Selector = Readonly<Record<string, unknown>>

/** The route that starts an action of any kind. Actions on active runs have their own selector, parsed in `cancel.ts`. */
export function startRoutes(deps: RouteDeps): Route[] {
  return [route(startBulkAction, (call) => startAny(deps, call)), ...savedRoutes(deps, validateSelector)]
}

type StartCall = Pick<Call, 'caller' | 'body' | 'headers' | 'signal'>

async function startAny(deps: RouteDeps, { caller, body, headers, signal }: StartCall): Promise<Reply> {
  const checked = checkedBody(body ?? {})
  const { kind } = checked
  if (kind === 'undoCancelRuns' || kind === 'undoCancelMessages') {
    checkSchema(kind, checked.selector ?? {})
    return startUndo(deps, caller, { ...checked, kind })
  }
  if (checked.clock !== undefined) throw invalid('`clock` is for `undoCancelRuns` and `undoCancelMessages` only.')
  const given = { ...checked, selector: await resolveSaved(deps, caller, kind, checked.selector ?? {}) }
  if (kind === 'pauseRuns' || kind === 'unpauseRuns') {
    const { pauseClock } = checked
    return startPause(deps, caller, { kind, pauseClock, selection: cancelBodyOf(given) }, signal)
  }
  if (checked.pauseClock !== undefined) throw invalid('`pauseClock` is for `pauseRuns` only.')
  if (kind === 'cancelRuns') return startCancel(deps, caller, cancelBodyOf(given), signal)
  return start(deps, caller, { ...given, kind }, { headers, signal })
}

const checkBody = compileChecker(startBulkAction.body.schema, 'body')

/** @throws HomeportError when the body is not valid. */
function checkedBody(given: unknown): StartBody {
  checkBody(given)
  // Just checked against the schema of this type.
  return given as StartBody
}

/** Translates to the body of `DELETE /v2/workflows/runs`. */
function cancelBodyOf({ kind: _, pauseClock: __, selector, ...others }: StartBody): object {
  return { ...onlyFilters(selector), ...others }
}

/**
 * Settings belong beside the selector; if both places had one, one would be ignored silently.
 * @throws HomeportError when a selector has more than filters.
 */
function onlyFilters(selector: Selector = {}): Selector {
  const found = NON_FILTER_FIELDS.find((name) => Object.hasOwn(selector, name))
  if (found === undefined) return selector
  throw invalid(`\`${found}\` is not a filter: put it beside \`selector\`. Nothing was changed.`)
}

async function start(
  deps: RouteDeps,
  caller: Caller,
  body: StartBody & { readonly kind: PlainKind },
  { headers, signal }: Pick<Call, 'headers' | 'signal'>,
): Promise<Reply> {
  const { kind, reason, ratePerSecond } = body
  if (body.fenceUntil !== undefined) throw invalid('`fenceUntil` is for `cancelRuns` only: nothing else can be fenced.')
  const selector = checkSelector(kind, body.selector ?? {})
  const settings = settingsOf(deps, kind, headers)
  const { conditions, filters } = splitConditions(selector)
  const at = deps.clock.now()
  const compiled = compileConditions(ITEMS_OF[kind], conditions)
  const refinement = compiled && new Refinement(deps.store, compiled, at, body.dryRun ? signal : undefined)
  const bounds = { accountId: caller.accountId, most: countOf(filters), at, refinement }
  const select = () => selectItems(deps, bounds, kind, filters, ageBounds(conditions, at))
  if (body.dryRun) return reply(200, await previewAnswer(deps.store, kind, await select()))
  const request = { kind, selector: selectorForRecords(selector), reason, ratePerSecond, ...(settings && { settings }) }
  return answerLater(deps, await createAction(deps, caller, request, select))
}

/** @throws HomeportError when a selector is not valid for a kind. Does not read what it matches. */
function validateSelector(kind: SelectingKind, given: Selector): void {
  if (isOfActiveRuns(kind)) {
    const parsed = parseSelector(onlyFilters(given), '')
    if ('problem' in parsed) throw new HomeportError('invalid_request', parsed)
    return
  }
  const { dlqIds: _, ...selector } = checkSelector(kind, given)
  const { filters } = splitConditions(selector)
  if (ITEMS_OF[kind] === 'deadRuns') deadRunSelectorOf('', filters, MAX_IDS)
  else readSelection(filters)
}

const isOfActiveRuns = (kind: SelectingKind): kind is ActiveRunsKind => ITEMS_OF[kind] === 'runs'

const countOf = ({ count }: Selector): number | undefined => (typeof count === 'number' ? count : undefined)

const invalid = (problem: string) => new HomeportError('invalid_request', { problem })

const CHECKERS = new Map<string, Checker>(
  Object.entries(BULK_SELECTORS).map(([kind, schema]) => [kind, compileChecker(schema, 'body')]),
)

/** Checks a selector and its conditions. */
function checkSelector(kind: PlainKind, given: Selector): Selector {
  const foreign = foreignCondition(ITEMS_OF[kind], given)
  if (foreign !== undefined) throw invalid(foreign)
  const selector = checkSchema(kind, given)
  const problem = conditionsProblem(selector)
  if (problem !== undefined) throw invalid(problem)
  return selector
}

/**
 * Checks a selector against its schema, because ignoring anything would widen the set. A string stands for a list of
 * one.
 */
function checkSchema(kind: PlainKind | UndoKind, given: Selector): Selector {
  const { properties } = BULK_SELECTORS[kind]
  const isList = (name: string) => 'items' in ((properties as Record<string, object>)[name] ?? {})
  const members = Object.entries(given).map(([name, value]) =>
    typeof value === 'string' && isList(name) ? [name, [value]] : [name, value],
  )
  const selector = Object.fromEntries(members)
  CHECKERS.get(kind)?.(selector)
  return selector
}

/**
 * JSON of the changes to resent items. Invalid settings, and callbacks to forbidden destinations, are refused even when
 * nothing matches.
 */
function settingsOf(deps: RouteDeps, kind: PlainKind, headers: IncomingHttpHeaders): string | undefined {
  const limits = { timeoutMs: deps.deliveryTimeoutMs }
  const now = deps.clock.now()
  switch (kind) {
    case 'resumeRuns':
    case 'restartRuns':
      deps.queue.refuseForbidden([], settingsIn(headers))
      return JSON.stringify(overridesOf(headers, now, limits))
    case 'retryDeadLetters':
      deps.queue.refuseForbidden([], settingsIn(headers))
      return JSON.stringify(revisionOf(headers, now, { limits }))
    case 'cancelMessages':
    case 'retryFailureCallbacks':
    case 'deleteDeadRuns':
    case 'deleteDeadLetters':
      return undefined
    default:
      return unreachable(kind)
  }
}

/** @throws HomeportError for values that the filters of the queue refuse. */
function filterOf(filters: Selector, { after, before }: AgeBounds): MessageFilter {
  const selection = readSelection(filters)
  const filter = selection.kind === 'filter' ? selection.filter : ANY_MESSAGE
  const { fromDate, toDate } = filter
  return {
    ...filter,
    ...(after !== undefined && { fromDate: Math.max(after + 1, fromDate ?? 0) }),
    ...(before !== undefined && { toDate: Math.min(before - 1, toDate ?? Number.MAX_SAFE_INTEGER) }),
  }
}

/** @throws HomeportError for values that the filters of workflows refuse. */
function deadFilterOf(accountId: string, filters: Selector, { after, before }: AgeBounds): DeadRunFilter | undefined {
  const { filter } = deadRunSelectorOf(accountId, filters, MAX_IDS) ?? {}
  if (filter === undefined) return undefined
  return {
    ...filter,
    ...(after !== undefined && { from: Math.max(after + 1, filter.from ?? 0) }),
    ...(before !== undefined && { to: Math.min(before - 1, filter.to ?? Number.MAX_SAFE_INTEGER) }),
  }
}

const NOTHING: FixedSet = { chunks: [], absent: [], matched: 0, first: [] }

function selectItems(
  { store }: RouteDeps,
  bounds: Bounds,
  kind: PlainKind,
  selector: Selector,
  ages: AgeBounds,
): Promise<FixedSet> {
  const { count: _, dlqIds, ...filters } = selector
  const { accountId } = bounds
  const ids = Array.isArray(dlqIds) ? dlqIds.map(String) : undefined
  switch (kind) {
    case 'cancelMessages': {
      const isEmptyList = Array.isArray(filters.messageIds) && filters.messageIds.length === 0
      return isEmptyList ? Promise.resolve(NOTHING) : selectMessages(store, bounds, filterOf(filters, ages))
    }
    case 'deleteDeadLetters':
    case 'retryDeadLetters':
      return selectDeadLetters(store, bounds, filterOf(filters, ages), ids)
    case 'resumeRuns':
    case 'restartRuns':
    case 'deleteDeadRuns': {
      const dead = deadFilterOf(accountId, { ...filters, ...(ids && { dlqIds: ids }) }, ages)
      return dead ? selectDeadRuns(store, bounds, dead) : Promise.resolve(NOTHING)
    }
    case 'retryFailureCallbacks': {
      const dead = deadFilterOf(accountId, { ...filters, ...(ids && { dlqIds: ids }) }, ages)
      return dead ? selectFailedCallbacks(store, bounds, dead) : Promise.resolve(NOTHING)
    }
    default:
      return unreachable(kind)
  }
}
