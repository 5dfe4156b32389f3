import type { Command } from 'commander'
import type { Static } from 'typebox'
import { parseDuration } from '../../base/index.js'
import type { CancelSelector } from '../../contract/bulk/actions.js'
import { requireSelection } from '../queue/filters.js'
import { durationText, given, wholeNumber } from '../remote/values.js'
import { type RunFilterOptions, runFilterFlags, runFilters } from './filters.js'

/** What a bulk cancel selects, as a person says it. */
export interface SelectorOptions extends RunFilterOptions {
  readonly exact?: boolean
  readonly count?: number
  readonly all?: boolean
  readonly reason?: string
  readonly rate?: number
  readonly fence?: string
}

/** The same as the API takes it. */
export type Selector = Static<typeof CancelSelector>

/** The flags of a selector. */
export function selectorFlags(command: Command): Command {
  return runFilterFlags(command, { url: 'whose URL begins so', from: 'created after', to: 'created before' })
    .option('--exact', 'the URL is the whole URL')
    .option('--count <number>', 'at most this many, oldest first', wholeNumber(0))
    .option('--all', 'every run that is not finished')
    .option('--reason <text>', 'why; kept with the action, in its audit entry and in the log of each run')
    .option('--rate <runs>', 'at most so many runs a second', wholeNumber(1))
    .option('--fence <duration>', 'refuse triggers of runs that match for so long from now', durationText)
}

/**
 * The selector of ids or filters. All filters have to hold.
 * @throws HomeportError `cli_misused` when nothing is selected, which would mean every run.
 */
export function selectorOf(options: SelectorOptions, ids: readonly string[]): Selector {
  const { exact, all } = options
  const filters = runFilters(options)
  requireSelection('runs', ids, filters, all)
  const settings = { ...given({ workflowUrlExactMatch: exact }), ...settingsOf(options) }
  return ids.length > 0 ? { workflowRunIds: [...ids], ...settings } : { ...filters, ...settings }
}

function settingsOf({ count, reason, rate, fence }: SelectorOptions) {
  const fenceMs = fence === undefined ? undefined : parseDuration(fence)
  const fenceUntil = fenceMs === undefined ? undefined : Date.now() + fenceMs
  return given({ count, reason, ratePerSecond: rate, fenceUntil })
}
