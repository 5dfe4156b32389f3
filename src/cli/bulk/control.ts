import {
  abortBulkAction,
  changeBulkAction,
  liftBulkFence,
  pauseBulkAction,
  resumeBulkAction,
} from '../../contract/bulk/control.js'
import { remote } from '../remote/remote.js'
import { given, wholeNumber } from '../remote/values.js'
import { renderFacts } from '../terminal/table.js'
import { actionFacts, actionOrMissing } from './action.js'

/** Commands that control a running bulk action. */

const ID = ['<id>', 'id of the action'] as const

const pauseOrResume = (
  name: 'pause' | 'resume',
  endpoint: typeof pauseBulkAction | typeof resumeBulkAction,
  summary: string,
) =>
  remote<{ reason?: string }>({
    name,
    summary,
    args: [ID],
    examples: [`homeport bulk ${name} bulk_…`],
    flags: (command) => command.option('--reason <text>', 'why; written to the audit log'),
    run: async ({ api, io, show }, { reason }, actionId) => {
      const action = await actionOrMissing(
        actionId,
        api.call(endpoint, { params: { actionId }, body: given({ reason }) }),
      )
      show(action, () => renderFacts(io, actionFacts(action)))
    },
  })

const abortCommand = remote<{ reason?: string }>({
  name: 'abort',
  summary: 'abort a bulk action; items that have an outcome keep it',
  args: [ID],
  isDestructive: true,
  flags: (command) => command.option('--reason <text>', 'why; written to the audit log'),
  examples: ["homeport bulk abort bulk_… --reason 'wrong label' --yes"],
  run: async ({ api, io, show, confirm }, { reason }, actionId) => {
    await confirm(`Abort the action ${actionId}? It cannot be resumed.`)
    const action = await actionOrMissing(
      actionId,
      api.call(abortBulkAction, { params: { actionId }, body: given({ reason }) }),
    )
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const rateCommand = remote<object, [string, number]>({
  name: 'rate',
  summary: 'change the rate limit of a bulk action',
  args: [ID, ['<items>', 'most items per second; 0 for no limit', wholeNumber(0)]],
  examples: ['homeport bulk rate bulk_… 200'],
  run: async ({ api, io, show }, _, actionId, items) => {
    const ratePerSecond = items || null
    const action = await actionOrMissing(
      actionId,
      api.call(changeBulkAction, { params: { actionId }, body: { ratePerSecond } }),
    )
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const unfenceCommand = remote({
  name: 'unfence',
  summary: 'lift the fence of a bulk cancel: matching runs may start again',
  args: [ID],
  examples: ['homeport bulk unfence bulk_…'],
  run: async ({ api, io, show }, _, actionId) => {
    const action = await actionOrMissing(actionId, api.call(liftBulkFence, { params: { actionId } }))
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

/** In the order of the help. */
export const controlCommands = [
  pauseOrResume('pause', pauseBulkAction, 'pause a bulk action'),
  pauseOrResume('resume', resumeBulkAction, 'resume a paused bulk action'),
  rateCommand,
  unfenceCommand,
  abortCommand,
]
