import type { Command } from 'commander'
import type { Static } from 'typebox'
import { BULK_KINDS, startBulkAction } from '../../contract/bulk/actions.js'
import { BulkPreview } from '../../contract/bulk/answers.js'
import { BULK_KIND_WORDS } from '../../contract/words/bulk.js'
import { type ResendOptions, resendFlags, resendHeaders } from '../queue/settings.js'
import { parsed } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { futureInstant, given, oneOf, wholeNumber } from '../remote/values.js'
import { andMore } from '../terminal/figures.js'
import { printable } from '../terminal/text.js'
import { itemsOf, titleOf } from './action.js'
import { unreadableLine } from './conditions.js'
import { followToEnd } from './follow.js'
import { type SelectionOptions, selectionFlags, selectorOf } from './selection.js'
import { CLOCKS, type UndoClock } from './undo.js'

/** `homeport bulk start`: starts a bulk action of any kind. */

interface StartOptions extends SelectionOptions, ResendOptions {
  readonly reason?: string
  readonly rate?: number
  readonly fenceUntil?: number
  readonly clock?: UndoClock
  readonly holdClock?: boolean
  readonly dryRun: boolean
  readonly watch: boolean
}

const startFlags = (command: Command): Command =>
  resendFlags(selectionFlags(command))
    .option('--reason <text>', 'why; stored with the action')
    .option('--rate <items>', 'most items per second', wholeNumber(1))
    .option('--fence-until <date>', 'refuse matching triggers until this time: "1h" from now, or a date', futureInstant)
    .option('--clock <clock>', 'with an undo: when deliveries are due: original, hold or now', oneOf(CLOCKS))
    .option('--hold-clock', 'with pauseRuns: move sleeps and timeouts later by the length of the pause')
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
    `homeport bulk start cancelMessages --state retry --payload '$.total > 100 and $.country = "DE"' --dry-run`,
    `homeport bulk start resumeRuns --selector '{"responseStatus": [503]}'`,
  ],
  run: async (session, options, kind, ids) => {
    const body = { kind, selector: selectorOf(kind, options, ids), ...settingsOf(options) }
    const { value } = await session.api.send(startBulkAction, { body: { ...body, dryRun: true } })
    const found = parsed(BulkPreview, value)
    const { matched } = found
    if (options.dryRun)
      return session.show(found, () => `would ${titleOf(kind)}: ${itemsOf(kind, matched)}\n${listOf(found)}`)
    // Nothing to confirm without a match. But a fence is useful without a match, and every given id gets an outcome.
    if (matched === 0 && ids.length === 0 && options.fenceUntil === undefined)
      return session.show(found, () => `No item matches. Nothing was changed.\n${unreadableLine(found)}`)
    await session.confirm(`${BULK_KIND_WORDS[kind].title}: ${itemsOf(kind, matched)}?`, String(matched))
    const accepted = await session.api.call(startBulkAction, { body, headers: resendHeaders(options) })
    const { actionId } = accepted
    if (options.watch) return await followToEnd(session, actionId)
    session.show(
      accepted,
      () =>
        `${titleOf(kind)}: ${itemsOf(kind, accepted.matched)}\nto follow it: homeport bulk watch ${actionId}\n${unreadableLine(accepted)}`,
    )
  },
})

/** The first items of a dry run, one per line, and the number of further items. */
function listOf({ matched, unreadable, preview }: Static<typeof BulkPreview>): string {
  const lines = preview.map(
    ({ workflowRunId, messageId, url }) => `  ${printable(`${workflowRunId ?? messageId}  ${url}`)}\n`,
  )
  const rest = matched - preview.length
  return `${lines.join('')}${rest > 0 ? `  ${andMore(rest)}\n` : ''}${unreadableLine({ unreadable })}`
}

const settingsOf = ({ reason, rate, fenceUntil, clock, holdClock }: StartOptions) =>
  given({ reason, ratePerSecond: rate, fenceUntil, clock, pauseClock: holdClock ? ('hold' as const) : undefined })
