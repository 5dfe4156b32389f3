import type { Command } from 'commander'
import type { Static } from 'typebox'
import { isObject, tryParseJson } from '../../base/index.js'
import { BULK_KINDS, BulkLook, startBulkAction } from '../../contract/bulk/actions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type FilterOptions, filterFlags, filtersOf, requireSelection } from '../queue/filters.js'
import { type ResendOptions, resendFlags, resendHeaders } from '../queue/settings.js'
import { parsed } from '../remote/api.js'
import { type PlaceOptions, placeFlags } from '../remote/filters.js'
import { remote } from '../remote/remote.js'
import { given, instant, oneOf, wholeNumber } from '../remote/values.js'
import { counted } from '../terminal/figures.js'
import { printable } from '../terminal/text.js'
import { followToEnd } from './follow.js'

/** `homeport bulk start`: starts a bulk action of any kind. */

type Kind = (typeof BULK_KINDS)[number]

interface StartOptions extends FilterOptions, PlaceOptions, ResendOptions {
  readonly selector?: string
  readonly all?: boolean
  readonly count?: number
  readonly reason?: string
  readonly rate?: number
  readonly fenceUntil?: number
  readonly dryRun: boolean
  readonly watch: boolean
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
}

const startFlags = (command: Command): Command =>
  resendFlags(placeFlags(filterFlags(command)))
    .option('--all', 'all items')
    .option('--count <number>', 'most items', wholeNumber(1))
    .option('--selector <json>', 'the selector of the API, instead of ids and filters')
    .option('--reason <text>', 'why; stored with the action')
    .option('--rate <items>', 'most items per second', wholeNumber(1))
    .option('--fence-until <date>', 'refuse matching triggers until this time', instant)
    .option('--dry-run', 'change nothing; print how many items match, and some of them', false)
    .option('--watch', 'follow the action to its end', false)

/** `homeport bulk start`. */
export const startCommand = remote<StartOptions, [(typeof BULK_KINDS)[number], string[]]>({
  name: 'start',
  summary: 'start a bulk action of any kind; it runs in the background',
  args: [
    ['<kind>', BULK_KINDS.join(', '), oneOf(BULK_KINDS)],
    [
      '[ids...]',
      'ids of runs, messages or dead letters, depending on the kind; without ids, items that match the filters',
    ],
  ],
  isDestructive: true,
  flags: startFlags,
  examples: [
    'homeport bulk start retryDeadLetters --url https://example.com/hook --rate 50 --watch',
    'homeport bulk start deleteDeadRuns --to 30d --dry-run',
    `homeport bulk start resumeRuns --selector '{"responseStatus": [503]}'`,
  ],
  run: async (session, options, kind, ids) => {
    const body = { kind, selector: selectorOf(kind, options, ids), ...settingsOf(options) }
    const { value } = await session.api.send(startBulkAction, { body: { ...body, dryRun: true } })
    const found = parsed(BulkLook, value)
    const { matched } = found
    if (options.dryRun) return session.show(found, () => `${kind}: ${counted(matched, 'item')}\n${listOf(found)}`)
    await session.confirm(`${kind}: ${counted(matched, 'item')}?`, String(matched))
    const accepted = await session.api.call(startBulkAction, { body, headers: resendHeaders(options) })
    const { actionId } = accepted
    if (options.watch) return await followToEnd(session, actionId)
    session.show(accepted, () => `${kind}: ${counted(accepted.matched, 'item')}: homeport bulk watch ${actionId}\n`)
  },
})

/** The first items of a dry run, one per line, and the number of further items. */
function listOf({ matched, preview }: Static<typeof BulkLook>): string {
  const lines = preview.map(
    ({ workflowRunId, messageId, url }) => `  ${printable(`${workflowRunId ?? messageId}  ${url}`)}\n`,
  )
  const rest = matched - preview.length
  return `${lines.join('')}${rest > 0 ? `  and ${counted(rest, 'more')}\n` : ''}`
}

const settingsOf = ({ reason, rate, fenceUntil }: StartOptions) => given({ reason, ratePerSecond: rate, fenceUntil })

/** Builds the selector. The server refuses filters that a kind does not have. */
function selectorOf(kind: Kind, options: StartOptions, ids: readonly string[]): Record<string, unknown> {
  const { url, ...filters } = filtersOf(options)
  const { host, path, count, selector, all } = options
  const parameters = PARAMETERS[kind]
  const chosen = { ...given({ [parameters.url]: url, host, path }), ...filters }
  if (selector !== undefined) {
    if (ids.length > 0 || all || count !== undefined || Object.keys(chosen).length > 0) {
      throw misused('--selector cannot be combined with ids, filters, --count and --all.')
    }
    return readSelector(selector)
  }
  requireSelection('items', ids, chosen, all)
  return { ...(ids.length > 0 ? { [parameters.ids]: ids } : chosen), ...given({ count }) }
}

function readSelector(selector: string): Record<string, unknown> {
  const value = tryParseJson(selector)
  if (isObject(value) && !Array.isArray(value)) return { ...value }
  throw misused('--selector must be a JSON object.')
}

const misused = (problem: string) => new HomeportError('cli_misused', { problem: `${problem} Nothing was changed.` })
