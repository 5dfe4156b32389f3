import type { Command } from 'commander'
import { HomeportError } from '../../contract/errors/errors.js'
import { type BasicOptions, basicFlags, type CallerOptions, callerFlags, commonFilters } from '../remote/filters.js'
import { given, list, wholeNumber } from '../remote/values.js'

/** Filters that messages, logs and dead letters share; all that are given have to hold. */
export interface FilterOptions extends BasicOptions, CallerOptions {
  readonly queue?: string[]
  readonly group?: string[]
  readonly schedule?: string[]
}

/** The flags of these filters. */
export function filterFlags(command: Command): Command {
  basicFlags(command, { url: 'to exactly this URL', from: 'not before', to: 'not after' })
    .option('--queue <names>', 'of this queue', list)
    .option('--group <names>', 'of this URL group', list)
    .option('--schedule <ids>', 'of this schedule', list)
  return callerFlags(command, 'published')
}

/** The same in the words of the API. */
export const filtersOf = (options: FilterOptions) => {
  const { url, queue, group, schedule } = options
  return { ...given({ url, queueName: queue, topicName: group, scheduleId: schedule }), ...commonFilters(options) }
}

/** The flags of a page of a list. */
export const pageFlags = (command: Command, count: number): Command =>
  command
    .option('--count <number>', 'at most this many', wholeNumber(1), count)
    .option('--cursor <cursor>', 'go on where a page before has ended')

/**
 * A command must say what it acts on: ids, a filter, or `--all`.
 * @throws HomeportError `cli_misused`.
 */
export function requireSelection(
  what: string,
  ids: readonly string[],
  filters: object,
  all: boolean | undefined,
): void {
  if (ids.length > 0 || Object.keys(filters).length > 0 || all === true) return
  const problem = `Say which ${what} you mean: ids, a filter, or --all. Nothing was done.`
  throw new HomeportError('cli_misused', { problem })
}

/** The line below a page that is not the last one. */
export const moreBelow = (cursor: string | undefined): string =>
  cursor === undefined ? '' : `There is more: --cursor ${cursor}\n`
