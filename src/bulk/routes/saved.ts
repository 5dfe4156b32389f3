import type { Static } from 'typebox'
import { isObject, newId } from '../../base/index.js'
import * as contract from '../../contract/bulk/saved.js'
import { ITEMS_OF, type SelectingKind } from '../../contract/bulk/selectors.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Caller, type Route, route } from '../../http/index.js'
import * as bulkSaved from '../transactions/bulk-saved.js'
import type { RouteDeps } from './creation.js'

/** Selectors that are saved under a name: their operations, and their use in the selector of an action. */

type SavedSelector = Static<typeof contract.SavedSelector>
type Selector = Readonly<Record<string, unknown>>

/** Throws if a selector is not valid for a kind. */
export type SelectorCheck = (kind: SelectingKind, selector: Selector) => void

/** The operations on saved selectors. */
export function savedRoutes(deps: RouteDeps, check: SelectorCheck): Route[] {
  const { store } = deps
  return [
    route(contract.saveSelector, ({ caller, params, body }) => save(deps, caller, params.name, body, check)),
    route(contract.listSelectors, async ({ caller: { accountId } }) => {
      return { selectors: (await store.run(bulkSaved.list, { accountId })).map(onWire) }
    }),
    route(contract.getSelector, async ({ caller, params }) => onWire(await find(deps, caller, params.name))),
    route(contract.deleteSelector, async ({ caller, params: { name } }) => {
      const dropped = await store.run(bulkSaved.drop, { accountId: caller.accountId, name, ...changeBy(deps, caller) })
      if (!dropped) throw new HomeportError('saved_selector_not_found', { name })
      return onWire(dropped)
    }),
  ]
}

function onWire({ name, kind, selector, saved_by, saved_at }: bulkSaved.SavedRow): SavedSelector {
  return { name, kind, selector: JSON.parse(selector), savedBy: saved_by, savedAt: saved_at }
}

function changeBy({ clock }: RouteDeps, { email: actor, source, ip }: Caller) {
  const at = clock.now()
  return { by: { actor, source, ip, logId: newId('log_', at) }, at }
}

async function save(
  deps: RouteDeps,
  caller: Caller,
  name: string,
  { kind, selector }: Pick<SavedSelector, 'kind' | 'selector'>,
  check: SelectorCheck,
): Promise<SavedSelector> {
  check(kind, selector)
  const json = JSON.stringify(selector)
  if (json.length > contract.MAX_SAVED_SELECTOR_LENGTH) {
    throw invalid(
      `The selector has ${json.length} characters; at most ${contract.MAX_SAVED_SELECTOR_LENGTH} can be saved. Nothing was saved.`,
    )
  }
  const change = changeBy(deps, caller)
  const saved = { saved_by: caller.email, saved_at: change.at }
  const row = { account_id: caller.accountId, name, kind, selector: json, ...saved }
  const most = contract.MAX_SAVED_SELECTORS
  if (await deps.store.run(bulkSaved.save, { row, most, ...change })) return onWire(row)
  throw invalid(`This account has ${most} saved selectors, the maximum. Delete one first.`)
}

const invalid = (problem: string) => new HomeportError('invalid_request', { problem })

async function find({ store }: RouteDeps, { accountId }: Caller, name: string): Promise<bulkSaved.SavedRow> {
  const row = await store.run(bulkSaved.find, { accountId, name })
  if (row) return row
  throw new HomeportError('saved_selector_not_found', { name: name.slice(0, 64) })
}

/**
 * Replaces `saved` in a selector by the fields of that saved selector. Fields beside `saved` narrow the set further. A field
 * that is in both is refused, because one of the two values would be ignored.
 */
export async function resolveSaved(
  deps: RouteDeps,
  caller: Caller,
  kind: SelectingKind,
  given: Selector,
): Promise<Selector> {
  if (!Object.hasOwn(given, 'saved')) return given
  const { saved: name, ...others } = given
  if (typeof name !== 'string' || name === '') throw invalid('`saved` must be the name of a saved selector.')
  const ids = ['workflowRunIds', 'messageIds', 'dlqIds'].find((field) => Object.hasOwn(others, field))
  if (ids !== undefined) throw invalid(`\`${ids}\` names the items; leave out \`saved\`. Nothing was changed.`)
  const row = await find(deps, caller, name)
  if (ITEMS_OF[row.kind] !== ITEMS_OF[kind]) {
    throw invalid(
      `The saved selector "${name}" is for ${row.kind} and does not fit ${kind}, which acts on other items.`,
    )
  }
  // Checked when it was saved, and again with the rest.
  const selector: Selector = JSON.parse(row.selector)
  const twice = Object.keys(others).find((field) => Object.hasOwn(selector, field))
  if (twice === undefined) return { ...selector, ...others }
  throw invalid(`\`${twice}\` is both in the request and in the saved selector "${name}". Nothing was changed.`)
}

/** The inputs of `DELETE /v2/workflows/runs` that select runs. */
export interface CancelRequest {
  readonly body: unknown
  /** Without its question mark. */
  readonly query: string
}

/** Does the same for a bulk cancel, where `saved` may be in the body or in the query. */
export async function resolveSavedCancel(
  deps: RouteDeps,
  caller: Caller,
  request: CancelRequest,
): Promise<CancelRequest> {
  const body = request.body ?? {}
  const parameters = new URLSearchParams(request.query.includes('saved') ? request.query : '')
  const names = parameters.getAll('saved')
  // The parser of the body refuses any other body.
  if (!isObject(body) || Array.isArray(body) || (names.length === 0 && !Object.hasOwn(body, 'saved'))) return request
  if (names.length + (Object.hasOwn(body, 'saved') ? 1 : 0) > 1) throw invalid('`saved` is given twice.')
  parameters.delete('saved')
  const [name = body.saved] = names
  const query = names.length > 0 ? parameters.toString() : request.query
  return { body: await resolveSaved(deps, caller, 'cancelRuns', { ...body, saved: name }), query }
}
