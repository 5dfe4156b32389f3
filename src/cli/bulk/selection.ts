import type { Command } from 'commander'
import { isObject, tryParseJson } from '../../base/index.js'
import type { BULK_KINDS } from '../../contract/bulk/actions.js'
import { misused } from '../errors.js'
import { type FilterOptions, filterFlags, filtersOf, requireSelection } from '../queue/filters.js'
import { type PlaceOptions, placeFlags } from '../remote/filters.js'
import { given, wholeNumber } from '../remote/values.js'
import { type ConditionOptions, conditionFlags, conditionsOf } from './conditions.js'

/** The flags that make a selector for any kind of bulk action. */

type Kind = (typeof BULK_KINDS)[number]

/** Options of a selector. */
export interface SelectionOptions extends FilterOptions, PlaceOptions, ConditionOptions {
  readonly selector?: string
  readonly all?: boolean
  readonly count?: number
}

/** The API parameters for ids and URLs of the items of each kind. */
const PARAMETERS: Readonly<Record<Kind, { readonly ids: string; readonly url: string }>> = {
  cancelRuns: { ids: 'workflowRunIds', url: 'workflowUrl' },
  cancelMessages: { ids: 'messageIds', url: 'url' },
  resumeRuns: { ids: 'dlqIds', url: 'workflowUrl' },
  restartRuns: { ids: 'dlqIds', url: 'workflowUrl' },
  retryFailureCallbacks: { ids: 'dlqIds', url: 'workflowUrl' },
  deleteDeadRuns: { ids: 'dlqIds', url: 'workflowUrl' },
  deleteDeadLetters: { ids: 'dlqIds', url: 'url' },
  retryDeadLetters: { ids: 'dlqIds', url: 'url' },
  undoCancelRuns: { ids: 'workflowRunIds', url: 'workflowUrl' },
  undoCancelMessages: { ids: 'messageIds', url: 'url' },
  pauseRuns: { ids: 'workflowRunIds', url: 'workflowUrl' },
  unpauseRuns: { ids: 'workflowRunIds', url: 'workflowUrl' },
}

/** Adds the flags of a selector. */
export const selectionFlags = (command: Command): Command =>
  conditionFlags(placeFlags(filterFlags(command)))
    .option('--all', 'all items')
    .option('--count <number>', 'most items', wholeNumber(1))
    .option('--selector <json>', 'the selector of the API, instead of ids and filters')

/** Builds the selector. The server refuses filters that a kind does not have. */
export function selectorOf(kind: Kind, options: SelectionOptions, ids: readonly string[]): Record<string, unknown> {
  const { url, ...filters } = filtersOf(options)
  const { host, path, count, selector, all } = options
  const parameters = PARAMETERS[kind]
  const chosen = { ...given({ [parameters.url]: url, host, path }), ...filters, ...conditionsOf(options) }
  if (selector !== undefined) {
    if (ids.length > 0 || all || count !== undefined || Object.keys(chosen).length > 0) {
      throw refused('--selector cannot be combined with ids, filters, --count and --all.')
    }
    return readSelector(selector)
  }
  requireSelection('items', ids, chosen, all)
  // The server refuses conditions beside ids, instead of ignoring them as filters.
  const selected = ids.length > 0 ? { [parameters.ids]: ids, ...conditionsOf(options) } : chosen
  return { ...selected, ...given({ count }) }
}

function readSelector(selector: string): Record<string, unknown> {
  const value = tryParseJson(selector)
  if (isObject(value) && !Array.isArray(value)) return { ...value }
  throw refused('--selector must be a JSON object.')
}

const refused = (problem: string) => misused(`${problem} Nothing was changed.`)
