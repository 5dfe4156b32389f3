import type { Command } from 'commander'
import type { Static } from 'typebox'
import { isObject, tryParseJson } from '../../base/index.js'
import { BULK_KINDS, BulkLook, startBulkAction } from '../../contract/bulk/actions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { FAILED } from '../exit-codes.js'
import { type FilterOptions, filterFlags, filtersOf, requireSelection } from '../queue/filters.js'
import { type ResendOptions, resendFlags, resendHeaders } from '../queue/settings.js'
import { parsed } from '../remote/api.js'
import { type PlaceOptions, placeFlags } from '../remote/filters.js'
import { remote, type Session } from '../remote/remote.js'
import { given, instant, oneOf, wholeNumber } from '../remote/values.js'
import { counted } from '../terminal/figures.js'
import { printable } from '../terminal/text.js'
import { endOf, watch } from './action.js'

/** `homeport bulk start`: a bulk action of any kind. */

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

/** How the API calls ids and URLs of the items of each kind. */
const WORDS: Readonly<Record<Kind, { readonly ids: string; readonly url: string }>> = {
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
    .option('--all', 'every item')
    .option('--count <number>', 'at most this many', wholeNumber(1))
    .option('--selector <json>', 'which items, in the words of the API, instead of ids and filters')
    .option('--reason <text>', 'why; kept with the action')
    .option('--rate <items>', 'at most so many items a second', wholeNumber(1))
    .option('--fence-until <date>', 'refuse matching triggers until then', instant)
    .option('--dry-run', 'do nothing; say how many it would be, and some of them', false)
    .option('--watch', 'follow it to its end', false)

/** `homeport bulk start`. */
export const startCommand = remote<StartOptions, [(typeof BULK_KINDS)[number], string[]]>({
  name: 'start',
  summary: 'start a bulk action of any kind; the server goes on with it by itself',
  args: [
    ['<kind>', BULK_KINDS.join(', '), oneOf(BULK_KINDS)],
    ['[ids...]', 'ids of runs or messages to cancel, else of dead letters; else those that the filters select'],
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
    const look = parsed(BulkLook, value)
    const { matched } = look
    if (options.dryRun) return session.show(look, () => `${kind}: ${counted(matched, 'item')}\n${listOf(look)}`)
    await session.confirm(`${kind}: ${counted(matched, 'item')}?`, String(matched))
    const accepted = await session.api.call(startBulkAction, { body, headers: resendHeaders(options) })
    const { actionId } = accepted
    if (options.watch) return await toTheEnd(session, actionId)
    session.show(accepted, () => `${kind}: ${counted(accepted.matched, 'item')}: homeport bulk watch ${actionId}\n`)
  },
})

/** The first items of a look, a line for each, and how many more there are. */
function listOf({ matched, preview }: Static<typeof BulkLook>): string {
  const lines = preview.map(
    ({ workflowRunId, messageId, url }) => `  ${printable(`${workflowRunId ?? messageId}  ${url}`)}\n`,
  )
  const rest = matched - preview.length
  return `${lines.join('')}${rest > 0 ? `  and ${counted(rest, 'more')}\n` : ''}`
}

/** Follows an action to its end and says how it was. */
export async function toTheEnd(session: Session, actionId: string): Promise<void> {
  const action = await watch(session, actionId)
  session.show(action, () => endOf(action))
  if (action.failed > 0) session.endWith(FAILED)
}

const settingsOf = ({ reason, rate, fenceUntil }: StartOptions) => given({ reason, ratePerSecond: rate, fenceUntil })

/** The server refuses filters that a kind does not have. */
function selectorOf(kind: Kind, options: StartOptions, ids: readonly string[]): Record<string, unknown> {
  const { url, ...filters } = filtersOf(options)
  const { host, path, count, selector, all } = options
  const words = WORDS[kind]
  const chosen = { ...given({ [words.url]: url, host, path }), ...filters }
  if (selector !== undefined) {
    if (ids.length > 0 || all || count !== undefined || Object.keys(chosen).length > 0) {
      throw misused('--selector says all of it: leave out ids, filters, --count and --all.')
    }
    return readSelector(selector)
  }
  requireSelection('items', ids, chosen, all)
  return { ...(ids.length > 0 ? { [words.ids]: ids } : chosen), ...given({ count }) }
}

function readSelector(selector: string): Record<string, unknown> {
  const value = tryParseJson(selector)
  if (isObject(value) && !Array.isArray(value)) return { ...value }
  throw misused('--selector has to be a JSON object.')
}

const misused = (problem: string) => new HomeportError('cli_misused', { problem: `${problem} Nothing was done.` })
