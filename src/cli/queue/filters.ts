import type { Command } from 'commander'
import { misused } from '../errors.js'
import { type BasicOptions, basicFlags, type CallerOptions, callerFlags, commonFilters } from '../remote/filters.js'
import { given, list, wholeNumber } from '../remote/values.js'
import { moment } from '../terminal/figures.js'

/** Filters of messages, logs and dead letters. An item must match all of them. */
export interface FilterOptions extends BasicOptions, CallerOptions {
  readonly queue?: string[]
  readonly group?: string[]
  readonly schedule?: string[]
}

/** Adds the flags of these filters. */
export function filterFlags(command: Command): Command {
  basicFlags(command, { url: 'to exactly this URL', from: 'not before', to: 'not after' })
    .optionsGroup('Filters:')
    .option('--queue <names>', 'of this queue', list)
    .option('--group <names>', 'of this URL group', list)
    .option('--schedule <ids>', 'of this schedule', list)
  return callerFlags(command, 'published')
}

/** The filters as API parameters. */
export const filtersOf = (options: FilterOptions) => {
  const { url, queue, group, schedule } = options
  return { ...given({ url, queueName: queue, topicName: group, scheduleId: schedule }), ...commonFilters(options) }
}

/** Adds the flags that select a page of a list. */
export const pageFlags = (command: Command, count: number): Command =>
  command
    .option('--count <number>', 'most entries', wholeNumber(1), count)
    .option('--cursor <cursor>', 'continue after the previous page')

/**
 * Refuses a destructive command without ids, filters and `--all`.
 * @throws HomeportError `cli_misused`.
 */
export function requireSelection(
  what: string,
  ids: readonly string[],
  filters: object,
  all: boolean | undefined,
): void {
  if (ids.length > 0 || Object.keys(filters).length > 0 || all === true) return
  const problem = `Select ${what} with ids, a filter or --all. Nothing was changed.`
  throw misused(problem)
}

/** A page of a list. A request may have searched only a part of the list. */
interface ListPage {
  readonly cursor?: string
  readonly searchedTo?: number
}

/** The line below a page that is not the last page. */
export const moreBelow = ({ cursor, searchedTo }: ListPage): string => {
  if (cursor === undefined) return ''
  if (searchedTo === undefined) return `More entries: --cursor ${cursor}\n`
  return `Searched as far as ${moment(searchedTo)}. Continue with: --cursor ${cursor}\n`
}

/** The text of a page of search results. `what`: the noun in plural. `table`: builds the table if there are rows. */
export function foundText<Row>(what: string, page: ListPage, rows: readonly Row[], table: () => string): string {
  const none = page.cursor === undefined ? `No ${what} match.\n` : `No ${what} match so far.\n`
  return (rows.length === 0 ? none : table()) + moreBelow(page)
}
