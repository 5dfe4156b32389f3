import type { Command } from 'commander'
import { startBulkAction } from '../../contract/bulk/actions.js'
import { BulkPreview } from '../../contract/bulk/answers.js'
import { pauseRun, unpauseRun } from '../../contract/workflow/pause.js'
import { type ConditionOptions, conditionFlags, conditionsOf, unreadableLine } from '../bulk/conditions.js'
import { followToEnd } from '../bulk/follow.js'
import { requireSelection } from '../queue/filters.js'
import { parsed } from '../remote/api.js'
import { remote, type Session } from '../remote/remote.js'
import { given, wholeNumber } from '../remote/values.js'
import { counted, moment } from '../terminal/figures.js'
import { printable } from '../terminal/text.js'
import { type RunFilterOptions, runFilterFlags, runFilters } from './find.js'

interface SelectionOptions extends RunFilterOptions, ConditionOptions {
  readonly all?: boolean
  readonly exact?: boolean
  readonly dryRun: boolean
  readonly reason?: string
  readonly rate?: number
}

interface PauseOptions extends SelectionOptions {
  readonly holdClock: boolean
}

const selectionFlags = (command: Command): Command =>
  conditionFlags(runFilterFlags(command, WORDS))
    .option('--exact', '--url is the whole URL, not its beginning')
    .option('--all', 'all active runs')
    .option('--dry-run', 'change nothing; print how many active runs match', false)
    .option('--reason <text>', 'why; shown by the runs and in the audit log')
    .option('--rate <runs>', 'most runs per second', wholeNumber(1))

const WORDS = { url: 'whose URL begins with this text', from: 'created after', to: 'created before' }

/** `homeport runs pause`: pauses runs. */
export const pauseCommand = remote<PauseOptions, [string[]]>({
  name: 'pause',
  summary: 'pause workflow runs: nothing of them is sent until `homeport runs unpause`',
  args: [['[ids...]', 'ids of active runs; without ids, those that match all filters']],
  flags: (command) =>
    selectionFlags(command).option(
      '--hold-clock',
      'move sleeps and timeouts later by the time that the run was paused',
      false,
    ),
  examples: [
    'homeport runs pause wfr_1 wfr_2 --reason maintenance',
    'homeport runs pause wfr_1 --hold-clock',
    'homeport runs pause --url https://example.com/ --reason maintenance',
  ],
  run: async (session, options, ids) => {
    const { holdClock, reason } = options
    const clock = holdClock ? ('hold' as const) : ('keep' as const)
    if (ids.length === 0) return await inBulk(session, { kind: 'pauseRuns', pauseClock: clock }, options)
    for (const workflowRunId of ids) {
      const run = await session.api.call(pauseRun, { params: { workflowRunId }, body: { ...given({ reason }), clock } })
      session.show(run, () => `paused since ${moment(run.paused.at)}: ${printable(workflowRunId)}\n`)
    }
  },
})

/** `homeport runs unpause`: lets paused runs continue. `homeport runs resume` is for failed ones. */
export const unpauseCommand = remote<SelectionOptions, [string[]]>({
  name: 'unpause',
  summary: 'let paused workflow runs continue; `homeport runs resume` is for failed runs',
  args: [['[ids...]', 'ids of paused runs; without ids, those that match all filters']],
  flags: selectionFlags,
  examples: ['homeport runs unpause wfr_1 wfr_2', 'homeport runs unpause --url https://example.com/'],
  run: async (session, options, ids) => {
    if (ids.length === 0) return await inBulk(session, { kind: 'unpauseRuns' }, options)
    for (const workflowRunId of ids) {
      const run = await session.api.call(unpauseRun, { params: { workflowRunId } })
      const state = run.pausedAt === undefined ? 'was not paused' : 'unpaused'
      session.show(run, () => `${state}: ${printable(workflowRunId)}\n`)
    }
  },
})

type Kind = { readonly kind: 'pauseRuns'; readonly pauseClock: 'keep' | 'hold' } | { readonly kind: 'unpauseRuns' }

/** Pauses or unpauses all active runs that match, with a bulk action. */
async function inBulk(session: Session, kind: Kind, options: SelectionOptions): Promise<void> {
  const filters = { ...runFilters(options), ...conditionsOf(options) }
  requireSelection('runs', [], filters, options.all)
  const selector = { ...filters, ...given({ workflowUrlExactMatch: options.exact }) }
  const { reason, rate } = options
  const body = { ...kind, selector, ...given({ reason, ratePerSecond: rate }) }
  if (!options.dryRun) return followToEnd(session, (await session.api.call(startBulkAction, { body })).actionId)
  const found = parsed(
    BulkPreview,
    (await session.api.send(startBulkAction, { body: { ...body, dryRun: true } })).value,
  )
  session.show(found, () => `${counted(found.matched, 'active run')}\n${unreadableLine(found)}`)
}
