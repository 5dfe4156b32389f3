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
import { actionFacts, knownAction } from './action.js'

/** Steering bulk actions that run. */

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
      const action = await knownAction(actionId, api.call(endpoint, { params: { actionId }, body: given({ reason }) }))
      show(action, () => renderFacts(io, actionFacts(action)))
    },
  })

const abortCommand = remote<{ reason?: string }>({
  name: 'abort',
  summary: 'end a bulk action forever; what it has done stays done',
  args: [ID],
  isDestructive: true,
  flags: (command) => command.option('--reason <text>', 'why; goes into the audit log'),
  run: async ({ api, io, show, confirm }, { reason }, actionId) => {
    await confirm(`Abort the action ${actionId}? It cannot be resumed.`)
    const action = await knownAction(
      actionId,
      api.call(abortBulkAction, { params: { actionId }, body: given({ reason }) }),
    )
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const rateCommand = remote<object, [string, number]>({
  name: 'rate',
  summary: 'change how fast a bulk action may go, at once',
  args: [ID, ['<items>', 'at most so many items a second; 0: no limit', wholeNumber(0)]],
  run: async ({ api, io, show }, _, actionId, items) => {
    const ratePerSecond = items || null
    const action = await knownAction(
      actionId,
      api.call(changeBulkAction, { params: { actionId }, body: { ratePerSecond } }),
    )
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const unfenceCommand = remote({
  name: 'unfence',
  summary: 'let runs that match the selector of a bulk cancel start again',
  args: [ID],
  run: async ({ api, io, show }, _, actionId) => {
    const action = await knownAction(actionId, api.call(liftBulkFence, { params: { actionId } }))
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

/** In the order of the help. */
export const controlCommands = [
  steering('pause', pauseBulkAction, 'stop a bulk action for a while'),
  steering('resume', resumeBulkAction, 'let a paused bulk action go on'),
  rateCommand,
  unfenceCommand,
  abortCommand,
]
