import type { Command } from 'commander'
import { undoCancelOfMessage, undoCancelOfRun } from '../../contract/bulk/undo.js'
import { CLOCKS, type UndoClock } from '../bulk/undo.js'
import { orMissing } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { given, oneOf } from '../remote/values.js'

interface UndoOptions {
  readonly clock?: UndoClock
  readonly reason?: string
}

const undoFlags = (command: Command): Command =>
  command
    .option(
      '--clock <clock>',
      'when deliveries are due: original (as before), hold (later by the time it was cancelled) or now',
      oneOf(CLOCKS),
    )
    .option('--reason <text>', 'why; stored with the action')

/** `homeport runs undo`: brings cancelled runs back, one by one. */
export const undoRunsCommand = remote<UndoOptions, [string[]]>({
  name: 'undo',
  summary: 'bring cancelled runs back; `homeport bulk undo` undoes a bulk cancel',
  args: [['<ids...>', 'ids of cancelled runs']],
  flags: undoFlags,
  examples: ['homeport runs undo wfr_1', 'homeport runs undo wfr_1 wfr_2 --clock hold'],
  run: async ({ api, show }, { clock, reason }, ids) => {
    for (const workflowRunId of ids) {
      const run = await api.call(undoCancelOfRun, { params: { workflowRunId }, body: given({ clock, reason }) })
      show(run, () => `brought back ${workflowRunId}\n`)
    }
  },
})

const noCancelled = (id: string): string =>
  `There is no cancelled message "${id}". Its log may say more: homeport queue logs --message ${id}.`

/** `homeport queue messages undo`: brings cancelled messages back, one by one. */
export const undoMessagesCommand = remote<UndoOptions, [string[]]>({
  name: 'undo',
  summary: 'bring cancelled messages back; `homeport bulk undo` undoes a bulk cancel',
  args: [['<ids...>', 'ids of cancelled messages']],
  flags: undoFlags,
  examples: ['homeport queue messages undo msg_…'],
  run: async ({ api, show }, { clock, reason }, ids) => {
    for (const messageId of ids) {
      const undone = api.call(undoCancelOfMessage, { params: { messageId }, body: given({ clock, reason }) })
      const message = await orMissing(undone, noCancelled(messageId))
      show(message, () => `brought back ${messageId}\n`)
    }
  },
})
