import type { Command } from 'commander'
import type { Static } from 'typebox'
import { parseDuration } from '../../base/index.js'
import type { CancelSelector } from '../../contract/bulk.js'
import { requireSelection } from '../queue/filters.js'
import { durationText, given, instant, repeated, wholeNumber } from '../remote/values.js'

/** What a bulk cancel selects, as a person says it. */
export interface SelectorOptions {
  readonly url?: string[]
  readonly exact?: boolean
  readonly label?: string[]
  readonly host?: string[]
  readonly path?: string[]
  readonly flowKey?: string[]
  readonly callerIp?: string[]
  readonly from?: number
  readonly to?: number
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
  return command
    .option('--url <prefix>', 'runs whose URL begins so; may be repeated', repeated)
    .option('--exact', 'the URL is the whole URL')
    .option('--label <label>', 'runs that carry this label; may be repeated', repeated)
    .option('--host <host>', 'runs whose URL has this host; may be repeated', repeated)
    .option('--path <path>', 'runs whose URL has this path; may be repeated', repeated)
    .option('--flow-key <key>', 'runs of this flow-control key; may be repeated', repeated)
    .option('--caller-ip <address>', 'runs triggered from this address; may be repeated', repeated)
    .option('--from <moment>', 'created after: "1h" ago, a date, or Unix milliseconds', instant)
    .option('--to <moment>', 'created before: "1h" ago, a date, or Unix milliseconds', instant)
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
  const { url, exact, label, host, path, flowKey, callerIp, from, to, all } = options
  const filters = given({
    workflowUrl: url,
    label,
    host,
    path,
    flowControlKey: flowKey,
    callerIp,
    fromDate: from,
    toDate: to,
  })
  requireSelection('runs', ids, filters, all)
  const settings = { ...given({ workflowUrlExactMatch: exact }), ...settingsOf(options) }
  return ids.length > 0 ? { workflowRunIds: [...ids], ...settings } : { ...filters, ...settings }
}

function settingsOf({ count, reason, rate, fence }: SelectorOptions) {
  const fenceMs = fence === undefined ? undefined : parseDuration(fence)
  const fenceUntil = fenceMs === undefined ? undefined : Date.now() + fenceMs
  return given({ count, reason, ratePerSecond: rate, fenceUntil })
}
