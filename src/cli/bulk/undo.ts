import { BulkPreview } from '../../contract/bulk/answers.js'
import { undoBulkAction } from '../../contract/bulk/undo.js'
import { parsed } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { given, oneOf, wholeNumber } from '../remote/values.js'
import { counted } from '../terminal/figures.js'
import { actionOrMissing } from './action.js'
import { followToEnd } from './follow.js'

/** When the deliveries that an undo brings back are due; see `UndoClock` of the contract. */
export const CLOCKS = ['original', 'hold', 'now'] as const
/** A value of `CLOCKS`. */
export type UndoClock = (typeof CLOCKS)[number]

interface UndoOptions {
  readonly clock?: UndoClock
  readonly reason?: string
  readonly rate?: number
  readonly dryRun: boolean
  readonly watch: boolean
}

/** `homeport bulk undo`: brings back the items that a bulk cancel has cancelled. */
export const undoCommand = remote<UndoOptions>({
  name: 'undo',
  summary: 'bring back the runs or messages that a bulk cancel has cancelled',
  args: [['<id>', 'id of the bulk cancel']],
  flags: (command) =>
    command
      .option(
        '--clock <clock>',
        'when they are due: original (as before), hold (later by the time they were cancelled) or now',
        oneOf(CLOCKS),
      )
      .option('--reason <text>', 'why; stored with the action')
      .option('--rate <items>', 'most items per second', wholeNumber(1))
      .option('--dry-run', 'change nothing; print how many items would be brought back', false)
      .option('--watch', 'follow the action to its end', false),
  examples: ['homeport bulk undo bulk_… --watch'],
  run: async (session, { clock, reason, rate, dryRun, watch }, actionId) => {
    const { api, show } = session
    const params = { actionId }
    if (dryRun) {
      const { value } = await actionOrMissing(actionId, api.send(undoBulkAction, { params, body: { dryRun } }))
      const found = parsed(BulkPreview, value)
      return show(found, () => `${counted(found.matched, 'item')} would be brought back.\n`)
    }
    const body = given({ clock, reason, ratePerSecond: rate })
    const accepted = await actionOrMissing(actionId, api.call(undoBulkAction, { params, body }))
    if (watch) return await followToEnd(session, accepted.actionId)
    show(
      accepted,
      () =>
        `bringing back ${counted(accepted.matched, 'item')}\nto follow it: homeport bulk watch ${accepted.actionId}\n`,
    )
  },
})
