import type { Command } from 'commander'
import type { Static } from 'typebox'
import { parseDuration } from '../../base/index.js'
import { type CancelSelector, cancelWorkflowRuns } from '../../contract/bulk/actions.js'
import { AcceptedAnswer } from '../../contract/bulk/answers.js'
import { actionFacts, summaryOf } from '../bulk/action.js'
import { type ConditionOptions, conditionFlags, conditionsOf, unreadableLine } from '../bulk/conditions.js'
import { endAs, watch } from '../bulk/follow.js'
import { FAILED, NOT_FOUND } from '../exit-codes.js'
import { requireSelection } from '../queue/filters.js'
import { parsed } from '../remote/api.js'
import { remote, type Session } from '../remote/remote.js'
import { durationText, given, wholeNumber } from '../remote/values.js'
import { andMore, counted } from '../terminal/figures.js'
import { renderFacts } from '../terminal/table.js'
import { printable } from '../terminal/text.js'
import { type RunFilterOptions, runFilterFlags, runFilters } from './find.js'

interface CancelOptions extends SelectorOptions {
  readonly dryRun: boolean
  readonly async: boolean
  readonly report: boolean
  readonly yes?: boolean
}

type Answer = Static<typeof cancelWorkflowRuns.success.body>

/** `homeport runs cancel`: cancels runs by ids or filters. */
export const cancelCommand = remote<CancelOptions, [string[]]>({
  name: 'cancel',
  summary: 'cancel workflow runs by ids or filters',
  args: [['[ids...]', 'ids of runs; without ids, those that match all filters']],
  isDestructive: true,
  flags: (command) =>
    selectorFlags(command)
      .option('--dry-run', 'cancel nothing; print how many runs match, and some of them', false)
      .option('--async', 'do not wait for the end; follow the action with `homeport bulk watch`', false)
      .option('--report', 'also print the outcomes', false),
  examples: [
    'homeport runs cancel wfr_1 wfr_2',
    'homeport runs cancel --url https://example.com/ --label slow --from 1h --dry-run',
    'homeport runs cancel --url https://example.com/ --label slow --from 1h --yes',
    'homeport runs cancel --label nightly --state sleeping,event --older-than 7d --dry-run',
    'homeport runs cancel --all --async --yes',
  ],
  run: async (session, options, ids) => {
    const selector = selectorOf(options, ids)
    if (options.dryRun) return await dryRun(session, selector)
    if (options.yes !== true && (await ask(session, selector)) === 'nothing') return
    if (options.async) return await begin(session, selector)
    // A person sees the progress; a program gets the response of the API.
    return session.isJson ? await cancel(session, selector, options) : await cancelAndWatch(session, selector, options)
  },
})

async function dryRun({ api, show }: Session, selector: Selector): Promise<void> {
  const answer = await api.call(cancelWorkflowRuns, { body: { ...selector, dryRun: true } })
  const sample = answer.sample ?? []
  const rest = (answer.matched ?? 0) - sample.length
  show(answer, () => {
    const ids = sample.map((id) => `  ${printable(id)}\n`).join('')
    return `would cancel ${counted(answer.matched ?? 0, 'run')}\n${ids}${rest > 0 ? `  ${andMore(rest)}\n` : ''}${unreadableLine(answer)}`
  })
}

/** Counts the runs with a dry run, so that the user confirms a number. Without a match there is nothing to confirm. */
async function ask({ api, confirm, show }: Session, selector: Selector): Promise<'confirmed' | 'nothing'> {
  const answer = await api.call(cancelWorkflowRuns, { body: { ...selector, dryRun: true } })
  const { matched = 0, unreadable } = answer
  // A fence keeps later runs from starting, so it is useful even without a match.
  if (matched === 0 && selector.fenceUntil === undefined) {
    const text = `No active run matches. Nothing was changed.\n${unreadableLine(answer)}`
    show({ cancelled: 0, ...given({ unreadable }) }, () => text)
    return 'nothing'
  }
  await confirm(`Cancel ${counted(matched, 'run')}?`, String(matched))
  return 'confirmed'
}

/** Starts the action in the background and returns its id. */
async function accept({ api }: Session, selector: Selector): Promise<Static<typeof AcceptedAnswer>> {
  const { value } = await api.send(cancelWorkflowRuns, { body: { ...selector, async: true } })
  return parsed(AcceptedAnswer, value)
}

async function begin(session: Session, selector: Selector): Promise<void> {
  const accepted = await accept(session, selector)
  const { actionId, matched } = accepted
  session.show(accepted, () => `cancelling ${counted(matched, 'run')}\nto follow it: homeport bulk watch ${actionId}\n`)
}

async function cancel({ api, show, endWith }: Session, selector: Selector, { report }: CancelOptions) {
  const answer: Answer = await api.call(cancelWorkflowRuns, { body: { ...selector, ...(report && { report }) } })
  show(answer, () => '')
  const { cancelled, failed = 0 } = answer
  const wanted = new Set(selector.workflowRunIds).size
  if (failed > 0) endWith(FAILED)
  else if (cancelled < wanted) endWith(NOT_FOUND)
}

async function cancelAndWatch(session: Session, selector: Selector, { report }: CancelOptions) {
  const { actionId } = await accept(session, selector)
  const action = await watch(session, actionId)
  session.io.out(summaryOf(action) + (report ? renderFacts(session.io, actionFacts(action)) : ''))
  endAs(session, action)
}

/** The flags of a bulk cancel. */
interface SelectorOptions extends RunFilterOptions, ConditionOptions {
  readonly exact?: boolean
  readonly count?: number
  readonly all?: boolean
  readonly reason?: string
  readonly rate?: number
  readonly fence?: string
}

/** The selector of the API. */
type Selector = Static<typeof CancelSelector>

/** Adds the flags of a selector. */
function selectorFlags(command: Command): Command {
  const words = { url: 'whose URL begins with this text', from: 'created after', to: 'created before' }
  return conditionFlags(runFilterFlags(command, words))
    .option('--exact', '--url is the whole URL, not its beginning')
    .option('--count <number>', 'most runs, oldest first', wholeNumber(0))
    .option('--all', 'all active runs')
    .option('--reason <text>', 'why; stored with the action, in its audit entry and in the log of each run')
    .option('--rate <runs>', 'most runs per second', wholeNumber(1))
    .option('--fence <duration>', 'refuse triggers of matching runs for this time', durationText)
}

/**
 * Builds the selector from ids or filters.
 * @throws HomeportError `cli_misused` without ids, filters and `--all`: an empty selector would match all runs.
 */
function selectorOf(options: SelectorOptions, ids: readonly string[]): Selector {
  const { exact, all } = options
  const filters = { ...runFilters(options), ...conditionsOf(options) }
  requireSelection('runs', ids, filters, all)
  const settings = { ...given({ workflowUrlExactMatch: exact }), ...settingsOf(options) }
  // The server refuses conditions beside ids, instead of ignoring them as filters.
  const selected = ids.length > 0 ? { workflowRunIds: [...ids], ...conditionsOf(options) } : filters
  return { ...selected, ...settings }
}

function settingsOf({ count, reason, rate, fence }: SelectorOptions) {
  const fenceMs = fence === undefined ? undefined : parseDuration(fence)
  const fenceUntil = fenceMs === undefined ? undefined : Date.now() + fenceMs
  return given({ count, reason, ratePerSecond: rate, fenceUntil })
}
