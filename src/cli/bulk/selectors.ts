import type { Static } from 'typebox'
import {
  deleteSelector,
  getSelector,
  listSelectors,
  type SavedSelector,
  saveSelector,
} from '../../contract/bulk/saved.js'
import { SELECTING_KINDS } from '../../contract/bulk/selectors.js'
import { orMissing } from '../remote/api.js'
import { group, remote } from '../remote/remote.js'
import { oneOf } from '../remote/values.js'
import { moment } from '../terminal/figures.js'
import { type Column, renderFacts, renderTable } from '../terminal/table.js'
import { selectionOf } from './action.js'
import { type SelectionOptions, selectionFlags, selectorOf } from './selection.js'

/** `homeport bulk selectors`: saves selectors under names. */

type Saved = Static<typeof SavedSelector>

const NAME = ['<name>', 'name of the selector'] as const

const COLUMNS: readonly Column<Saved>[] = [
  { title: 'NAME', value: (one) => one.name },
  { title: 'KIND', value: (one) => one.kind },
  { title: 'SAVED', value: (one) => moment(one.savedAt) },
  { title: 'SELECTION', cuts: true, value: selectionOf },
]

const factsOf = ({ name, kind, selector, savedBy, savedAt }: Saved) =>
  [
    ['name', name],
    ['kind', kind],
    ['selection', selectionOf({ kind, selector })],
    ['saved by', savedBy],
    ['saved', moment(savedAt)],
  ] as const

const orUnknown = <Answer>(name: string, request: Promise<Answer>): Promise<Answer> =>
  orMissing(request, `There is no saved selector "${name}". See: homeport bulk selectors list.`)

const listCommand = remote({
  name: 'list',
  summary: 'list saved selectors',
  examples: ['homeport bulk selectors list'],
  run: async ({ api, io, show }) => {
    const { selectors } = await api.call(listSelectors, {})
    show(selectors, () => renderTable(io, COLUMNS, selectors, 'There are no saved selectors.\n'))
  },
})

const showCommand = remote({
  name: 'show',
  summary: 'show a saved selector',
  args: [NAME],
  examples: ['homeport bulk selectors show stuck-nightly'],
  run: async ({ api, io, show }, _, name) => {
    const saved = await orUnknown(name, api.call(getSelector, { params: { name } }))
    show(saved, () => renderFacts(io, factsOf(saved)))
  },
})

const saveCommand = remote<SelectionOptions, [string, (typeof SELECTING_KINDS)[number]]>({
  name: 'save',
  summary: 'save a selector under a name, or replace it',
  args: [NAME, ['<kind>', `a kind of action that takes it: ${SELECTING_KINDS.join(', ')}`, oneOf(SELECTING_KINDS)]],
  flags: selectionFlags,
  examples: [
    'homeport bulk selectors save stuck-nightly cancelRuns --label nightly --state retry --older-than 2h',
    'homeport bulk start cancelRuns --saved stuck-nightly --dry-run',
  ],
  run: async ({ api, io, show }, options, name, kind) => {
    const body = { kind, selector: selectorOf(kind, options, []) }
    const saved = await api.call(saveSelector, { params: { name }, body })
    show(saved, () => renderFacts(io, factsOf(saved)))
  },
})

const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a saved selector; actions that used it continue',
  args: [NAME],
  examples: ['homeport bulk selectors delete stuck-nightly'],
  run: async ({ api, io, show }, _, name) => {
    const saved = await orUnknown(name, api.call(deleteSelector, { params: { name } }))
    show(saved, () => renderFacts(io, factsOf(saved)))
  },
})

/** `homeport bulk selectors` with its commands. */
export const selectorsCommand = group('selectors', 'save selectors of bulk actions under names', [
  listCommand,
  showCommand,
  saveCommand,
  deleteCommand,
])
