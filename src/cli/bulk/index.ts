/** `homeport bulk`: starts and controls bulk actions of a server. */
import type { Static } from 'typebox'
import { getBulkAction, listBulkActions, listBulkOutcomes } from '../../contract/bulk/actions.js'
import type { Outcome } from '../../contract/bulk/answers.js'
import { BULK_WORDS, OUTCOME_WORDS } from '../../contract/words/states.js'
import { moreBelow, pageFlags } from '../queue/filters.js'
import { group, remote } from '../remote/remote.js'
import { given, list } from '../remote/values.js'
import { figure, moment } from '../terminal/figures.js'
import { type Column, renderFacts, renderTable, stateColumn } from '../terminal/table.js'
import { type Action, actionFacts, actionOrMissing, selectionOf } from './action.js'
import { controlCommands } from './control.js'
import { watchToEnd } from './follow.js'
import { selectorsCommand } from './selectors.js'
import { startCommand } from './start.js'
import { undoCommand } from './undo.js'

type ItemOutcome = Static<typeof listBulkOutcomes.success.body>['outcomes'][number]

const ID = ['<id>', 'id of the action'] as const

const COLUMNS: readonly Column<Action>[] = [
  { title: 'ACTION', value: (one) => one.actionId },
  { title: 'KIND', cuts: true, value: (one) => one.kind },
  stateColumn((one) => BULK_WORDS[one.state]),
  { title: 'DONE', value: (one) => `${figure(one.done)} of ${figure(one.matched)}`, align: 'right' },
  {
    isExtra: true,
    title: 'FAILED',
    value: (one) => figure(one.failed),
    align: 'right',
    tone: (one) => (one.failed > 0 ? 'red' : 'plain'),
  },
  { isExtra: true, title: 'STARTED', value: (one) => moment(one.createdAt) },
  { title: 'SELECTION', cuts: true, value: selectionOf },
]

const listCommand = remote<{ count: number; cursor?: string; state?: string[]; kind?: string[] }>({
  name: 'list',
  summary: 'list bulk actions, newest first',
  flags: (command) =>
    pageFlags(command, 20)
      .option('--state <states>', 'only in these states, separated by commas', list)
      .option('--kind <kinds>', 'only of these kinds, separated by commas', list),
  examples: ['homeport bulk list --state running,paused'],
  run: async ({ api, io, show }, { count, cursor, state, kind }) => {
    // The server validates the values and lists the valid ones.
    const filter = given({
      cursor,
      state: state as Action['state'][] | undefined,
      kind: kind as Action['kind'][] | undefined,
    })
    const page = await api.call(listBulkActions, { query: { count, ...filter } })
    const rows = page.bulkActions
    const text = () => renderTable(io, COLUMNS, rows) + moreBelow(page)
    const isAny = state === undefined && kind === undefined
    show(page, () => {
      if (rows.length > 0) return text()
      return isAny ? 'There are no bulk actions.\n' : 'No bulk actions match.\n'
    })
  },
})

const showCommand = remote({
  name: 'show',
  summary: 'show a bulk action and its progress',
  args: [ID],
  examples: ['homeport bulk show bulk_…'],
  run: async ({ api, io, show }, _, actionId) => {
    const action = await actionOrMissing(actionId, api.call(getBulkAction, { params: { actionId } }))
    show(action, () => renderFacts(io, actionFacts(action)))
  },
})

const OUTCOME_COLUMNS: readonly Column<ItemOutcome>[] = [
  { title: 'ITEM', value: (one) => one.workflowRunId ?? one.messageId ?? one.dlqId ?? '(its log was removed)' },
  stateColumn((one) => OUTCOME_WORDS[one.outcome], 'OUTCOME'),
  { title: '', cuts: true, value: (one) => one.error },
]

const outcomesCommand = remote<{ count: number; cursor?: string; outcome?: string[] }>({
  name: 'outcomes',
  summary: 'list the outcome of each item of a bulk action',
  args: [ID],
  flags: (command) =>
    pageFlags(command, 100).option('--outcome <outcomes>', 'only these outcomes, separated by commas', list),
  examples: ['homeport bulk outcomes bulk_… --outcome failed,alreadyFinished'],
  run: async ({ api, io, show }, { count, cursor, outcome }, actionId) => {
    // The server validates the values and lists the valid ones.
    const filter = given({ cursor, outcome: outcome as Static<typeof Outcome>[] | undefined })
    const page = await actionOrMissing(
      actionId,
      api.call(listBulkOutcomes, { params: { actionId }, query: { count, ...filter } }),
    )
    const text = () => renderTable(io, OUTCOME_COLUMNS, page.outcomes) + moreBelow(page)
    show(page, () => (page.outcomes.length === 0 ? 'No items match.\n' : text()))
  },
})

const watchCommand = remote({
  name: 'watch',
  summary: 'follow a bulk action to its end; exit code 1 when an item failed',
  args: [ID],
  isStream: true,
  examples: ['homeport bulk watch bulk_…', 'homeport bulk watch bulk_… --json | jq .done'],
  run: (session, _, actionId) => watchToEnd(session, actionId),
})

/** `homeport bulk` with its commands. */
export const bulkCommand = group('bulk', 'start, follow and control bulk actions', [
  listCommand,
  showCommand,
  outcomesCommand,
  watchCommand,
  startCommand,
  undoCommand,
  ...controlCommands,
  selectorsCommand,
])
