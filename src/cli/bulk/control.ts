import {
  abortBulkAction,
  BULK_KINDS,
  changeBulkAction,
  liftBulkFence,
  pauseBulkAction,
  resumeBulkAction,
  startBulkAction,
} from '../../contract/bulk.js'
import { HomeportError } from '../../contract/errors.js'
import { remote } from '../remote/remote.js'
import { given, instant, oneOf, wholeNumber } from '../remote/values.js'
import { counted } from '../terminal/figures.js'
import { renderFacts } from '../terminal/table.js'
import { actionFacts } from './action.js'

/** Starting bulk actions of any kind, and steering those that run. */

const ID = ['<id>', 'id of the action'] as const

const steering = (
  name: 'pause' | 'resume',
  endpoint: typeof pauseBulkAction | typeof resumeBulkAction,
  summary: string,
) =>
  remote<{ reason?: string }>({
    name,
    summary,
    args: [ID],
    flags: (command) => command.option('--reason <text>', 'why; goes into the audit log'),
    run: async ({ api, io, show }, { reason }, actionId) => {
      const action = await api.call(endpoint, { params: { actionId }, body: given({ reason }) })
      show(action, () => renderFacts(io, actionFacts(action)))
    },
  })

const abortCommand = remote<{ reason?: string }>({
  name: 'abort',
  summary: 'end a bulk action for ever; what it has done stays done',
  args: [ID],
  isDestructive: true,
  flags: (command) => command.option('--reason <text>', 'why; goes into the audit log'),
  run: async ({ api, io, show, confirm }, { reason }, actionId) => {
    await confirm(`Abort the action ${actionId}? It cannot be resumed.`)
    const action = await api.call(abortBulkAction, { params: { actionId }, body: given({ reason }) })
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const rateCommand = remote<object, [string, string]>({
  name: 'rate',
  summary: 'change how fast a bulk action may go, at once',
  args: [ID, ['<items>', 'at most so many items a second; 0: no limit']],
  run: async ({ api, io, show }, _, actionId, items) => {
    const ratePerSecond = wholeNumber(0)(items) || null
    const action = await api.call(changeBulkAction, { params: { actionId }, body: { ratePerSecond } })
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const unfenceCommand = remote({
  name: 'unfence',
  summary: 'let runs that match the selector of a bulk cancel start again',
  args: [ID],
  run: async ({ api, io, show }, _, actionId) => {
    const action = await api.call(liftBulkFence, { params: { actionId } })
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

interface StartOptions {
  readonly selector?: string
  readonly all?: boolean
  readonly reason?: string
  readonly rate?: number
  readonly fenceUntil?: number
  readonly dryRun: boolean
}

const startCommand = remote<StartOptions>({
  name: 'start',
  summary: 'start a bulk action of any kind; the server goes on with it by itself',
  args: [['<kind>', BULK_KINDS.join(', ')]],
  isDestructive: true,
  flags: (command) =>
    command
      .option('--selector <json>', 'which items, in the words of the API')
      .option('--all', 'every item')
      .option('--reason <text>', 'why; kept with the action')
      .option('--rate <items>', 'at most so many items a second', wholeNumber(1))
      .option('--fence-until <date>', 'refuse matching triggers until then', instant)
      .option('--dry-run', 'do nothing; say how many it would be', false),
  examples: [
    `homeport bulk start retryDeadLetters --selector '{"url": "https://example.com/hook"}' --rate 50`,
    'homeport bulk start resumeRuns --all --dry-run',
  ],
  run: async ({ api, show, confirm }, options, word) => {
    const kind = oneOf(BULK_KINDS)(word)
    const body = { kind, selector: readSelector(options), ...settingsOf(options) }
    const { value: look } = await api.send(startBulkAction, { body: { ...body, dryRun: true } })
    const matched = typeof look === 'object' && look !== null && 'matched' in look ? Number(look.matched) : 0
    if (options.dryRun) return show(look, () => `${kind}: ${counted(matched, 'item')}\n`)
    await confirm(`${kind}: ${counted(matched, 'item')}?`, String(matched))
    const accepted = await api.call(startBulkAction, { body })
    show(accepted, () => `${kind}: ${counted(accepted.matched, 'item')}: homeport bulk watch ${accepted.actionId}\n`)
  },
})

const settingsOf = ({ reason, rate, fenceUntil }: StartOptions) => given({ reason, ratePerSecond: rate, fenceUntil })

function readSelector({ selector, all }: StartOptions): Record<string, unknown> {
  if ((selector === undefined) === (all !== true)) throw misused('Say which items you mean: --selector, or --all.')
  if (selector === undefined) return {}
  try {
    const value: unknown = JSON.parse(selector)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  } catch {}
  throw misused('--selector has to be a JSON object.')
}

const misused = (problem: string) => new HomeportError('cli_misused', { problem: `${problem} Nothing was done.` })

/** In the order of the help. */
export const controlCommands = [
  startCommand,
  steering('pause', pauseBulkAction, 'stop a bulk action for a while'),
  steering('resume', resumeBulkAction, 'let a paused bulk action go on'),
  rateCommand,
  unfenceCommand,
  abortCommand,
]
