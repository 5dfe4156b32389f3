import type { IncomingHttpHeaders } from 'node:http'
import type { Static } from 'typebox'
import { unreachable } from '../../base/index.js'
import { startBulkAction } from '../../contract/bulk/actions.js'
import { BULK_SELECTORS } from '../../contract/bulk/selectors.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MOST_IDS } from '../../contract/request-limits.js'
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
import type { FixedSet } from '../selector/fixed-set.js'
import {
  selectDeadLetters,
  selectDeadRuns,
  selectFailedCallbacks,
  selectMessages,
} from '../selector/select-messages.js'
import { NON_FILTER_FIELDS } from '../selector/selector-fields.js'
import { previewAnswer, selectorForRecords } from './answers.js'
import { startCancel } from './cancel.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'

type StartBody = Static<(typeof startBulkAction)['body']['schema']>
/** Kinds whose selectors a schema can describe. */
type PlainKind = Exclude<BulkKindName, 'cancelRuns'>
type Selector = Readonly<Record<string, unknown>>

/** Starting an action of any kind. Canceling runs has a selector of its own, which the functions of `cancel.ts` understand. */
export function startRoutes(deps: RouteDeps): Route[] {
  return [route(startBulkAction, (call) => startAny(deps, call))]
}

type StartCall = Pick<Call, 'caller' | 'body' | 'headers'>

async function startAny(deps: RouteDeps, { caller, body, headers }: StartCall): Promise<Reply> {
  const given = checked(body ?? {})
  const { kind } = given
  if (kind === 'cancelRuns') return startCancel(deps, caller, cancelOf(given))
  return start(deps, caller, { ...given, kind }, headers)
}

const checkBody = compileChecker(startBulkAction.body.schema, 'body')

/** @throws HomeportError when it is no request to start an action. */
function checked(given: unknown): StartBody {
  checkBody(given)
  // The schema that was checked is that of this type.
  return given as StartBody
}

/** The request that `DELETE /v2/workflows/runs` would take. */
function cancelOf({ kind: _, selector, ...others }: StartBody): object {
  return { ...onlySelecting(selector), ...others }
}

/**
 * What is no filter stands beside the selector; said in both places, one of them would silently not count.
 * @throws HomeportError when there is more in a selector than what selects.
 */
function onlySelecting(selector: Selector = {}): Selector {
  const found = NON_FILTER_FIELDS.find((name) => Object.hasOwn(selector, name))
  if (found === undefined) return selector
  throw invalid(`\`${found}\` is no filter: it does not belong into \`selector\`. Nothing was cancelled.`)
}

async function start(
  deps: RouteDeps,
  caller: Caller,
  body: StartBody & { readonly kind: PlainKind },
  headers: IncomingHttpHeaders,
): Promise<Reply> {
  const { kind, reason, ratePerSecond } = body
  if (body.fenceUntil !== undefined) throw invalid('`fenceUntil` is for `cancelRuns` only: nothing else can be fenced.')
  const selector = understand(kind, body.selector ?? {})
  const settings = settingsOf(deps, kind, headers)
  const fix = () => selectItems(deps, caller.accountId, kind, selector)
  if (body.dryRun) return reply(200, await previewAnswer(deps.store, kind, await fix()))
  const wanted = { kind, selector: selectorForRecords(selector), reason, ratePerSecond, ...(settings && { settings }) }
  return answerLater(deps, await createAction(deps, caller, wanted, fix))
}

const invalid = (problem: string) => new HomeportError('invalid_request', { problem })

const CHECKERS = new Map<string, Checker>(
  Object.entries(BULK_SELECTORS).map(([kind, schema]) => [kind, compileChecker(schema, 'body')]),
)

/** Everything is checked, because whatever is passed over widens the set; one text stands for a list of one. */
function understand(kind: PlainKind, given: Selector): Selector {
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
 * JSON of what is changed of things that are sent again; wrong settings, and callbacks to where this server may not go,
 * are refused also when there is nothing to do.
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

/** @throws HomeportError for values that the filters of the queue refuse too. */
function filterOf(filters: Selector): MessageFilter {
  const selection = readSelection(filters)
  return selection.kind === 'filter' ? selection.filter : ANY_MESSAGE
}

const NOTHING: FixedSet = { chunks: [], absent: [], matched: 0, first: [] }

function selectItems(
  { store, clock }: RouteDeps,
  accountId: string,
  kind: PlainKind,
  selector: Selector,
): Promise<FixedSet> {
  const { count, dlqIds, ...filters } = selector
  const bounds = { accountId, most: typeof count === 'number' ? count : undefined, at: clock.now() }
  const ids = Array.isArray(dlqIds) ? dlqIds.map(String) : undefined
  switch (kind) {
    case 'cancelMessages': {
      const isEmptyList = Array.isArray(filters.messageIds) && filters.messageIds.length === 0
      return isEmptyList ? Promise.resolve(NOTHING) : selectMessages(store, bounds, filterOf(filters))
    }
    case 'deleteDeadLetters':
    case 'retryDeadLetters':
      return selectDeadLetters(store, bounds, filterOf(filters), ids)
    case 'resumeRuns':
    case 'restartRuns':
    case 'deleteDeadRuns': {
      const dead = deadRunSelectorOf(accountId, { ...filters, ...(ids && { dlqIds: ids }) }, MOST_IDS)
      return dead ? selectDeadRuns(store, bounds, dead.filter) : Promise.resolve(NOTHING)
    }
    case 'retryFailureCallbacks': {
      const dead = deadRunSelectorOf(accountId, { ...filters, ...(ids && { dlqIds: ids }) }, MOST_IDS)
      return dead ? selectFailedCallbacks(store, bounds, dead.filter) : Promise.resolve(NOTHING)
    }
    default:
      return unreachable(kind)
  }
}
