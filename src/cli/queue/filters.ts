import type { Command } from 'commander'
import { HomeportError } from '../../contract/errors.js'
import { given, instant, list, repeated, wholeNumber } from '../remote/values.js'

/** Filters that messages, logs and dead letters share; all that are given have to hold. */
export interface FilterOptions {
  readonly url?: string[]
  readonly label?: string[]
  readonly queue?: string[]
  readonly group?: string[]
  readonly schedule?: string[]
  readonly flowKey?: string[]
  readonly callerIp?: string[]
  readonly from?: number
  readonly to?: number
}

/** The flags of these filters. */
export function filterFlags(command: Command): Command {
  return command
    .option('--url <url>', 'to exactly this URL; may be repeated', repeated)
    .option('--label <label>', 'with this label; may be repeated', repeated)
    .option('--queue <names>', 'of this queue', list)
    .option('--group <names>', 'of this URL group', list)
    .option('--schedule <ids>', 'of this schedule', list)
    .option('--flow-key <key>', 'of this flow-control key; may be repeated', repeated)
    .option('--caller-ip <addresses>', 'published from this address', list)
    .option('--from <moment>', 'not before: "1h" ago, a date, or Unix milliseconds', instant)
    .option('--to <moment>', 'not after: "1h" ago, a date, or Unix milliseconds', instant)
}

/** The same in the words of the API. */
export function filtersOf(options: FilterOptions) {
  const { url, label, queue, group, schedule, flowKey, callerIp, from, to } = options
  return given({
    url,
    label,
    queueName: queue,
    topicName: group,
    scheduleId: schedule,
    flowControlKey: flowKey,
    callerIp,
    fromDate: from,
    toDate: to,
  })
}

/** The flags of a page of a list. */
export const pageFlags = (command: Command, count: number): Command =>
  command
    .option('--count <number>', 'at most this many', wholeNumber(1), count)
    .option('--cursor <cursor>', 'go on where a page before has ended')

/**
 * What is acted on has to be said: ids, a filter, or `--all`.
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
