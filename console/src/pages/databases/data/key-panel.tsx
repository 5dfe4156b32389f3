import IconKey from 'icon:key'
import IconList from 'icon:list'
import IconListTree from 'icon:list-tree'
import IconSearch from 'icon:search'
import { ActionIcon, Button, Group, Select, Text, TextInput, Tooltip } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect, useMemo, useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, ErrorState, LoadingLines } from '../../../components/states.js'
import { KeyGrid } from './key-grid.js'
import type { KeyList } from './key-list.js'
import { KeyTools } from './key-tools.js'
import { KEY_TYPES, type KeySearch, type KeyType, scannedText } from './keys.js'
import { type KeysView, useKeysView } from './keys-view.js'
import { refreshData, useKeyCount, useKeyList } from './reads.js'
import { SelectionBar, type SelectionTask } from './selection-bar.js'

interface KeysProps {
  readonly plane: DataPlane
  /** The name of the database, for files. */
  readonly database: string
  readonly chosen: KeyName | undefined
  readonly onChoose: (name: KeyName) => void
  /** Keys that were deleted elsewhere on the page. */
  readonly gone: readonly KeyName[]
}

/** The keys that match a search, as a list or a tree, with actions on the selected ones. */
export function Keys({ plane, database, chosen, onChoose, gone }: KeysProps) {
  const [typed, setTyped] = useState('')
  const [type, setType] = useState<KeyType | undefined>()
  const [view, setView] = useKeysView()
  const [generation, setGeneration] = useState(0)
  const [pattern] = useDebouncedValue(typed.trim(), 300)
  const search = useMemo((): KeySearch => ({ pattern, type }), [pattern, type])
  const { list, version } = useKeyList(plane, search, view.kind === 'tree' ? view.separator : '', generation)
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each deletion: a later search may find the name again.
  useEffect(() => list?.remove(gone), [gone])
  const again = () => {
    setGeneration((last) => last + 1)
    void refreshData(plane)
  }
  const made = (name: KeyName) => {
    list?.add(name)
    onChoose(name)
  }
  return (
    <Panel
      flush
      title="Keys"
      actions={
        <KeyTools
          plane={plane}
          database={database}
          search={search}
          onMade={made}
          onDeleted={(names) => list?.remove(names)}
          onAgain={again}
        />
      }
    >
      <Group gap="xs" px="md" pb="sm">
        <TextInput
          data-search
          aria-label="Pattern"
          placeholder="Pattern, such as user:*"
          size="xs"
          flex="1 1 150px"
          leftSection={<IconSearch size={14} />}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Select
          aria-label="Type"
          size="xs"
          w={104}
          data={[{ value: '', label: 'All types' }, ...KEY_TYPES.map((value) => ({ value, label: value }))]}
          value={type ?? ''}
          onChange={(value) => setType(KEY_TYPES.find((known) => known === value))}
        />
        <ViewTools view={view} onChange={setView} />
      </Group>
      {list === undefined ? (
        <LoadingLines />
      ) : (
        <Found
          plane={plane}
          database={database}
          list={list}
          version={version}
          search={search}
          chosen={chosen}
          onChoose={onChoose}
        />
      )}
    </Panel>
  )
}

function ViewTools({ view, onChange }: { view: KeysView; onChange: (view: KeysView) => void }) {
  const isTree = view.kind === 'tree'
  return (
    <Group gap={4} wrap="nowrap">
      <Tooltip label="List">
        <ActionIcon
          aria-label="Show as a list"
          aria-pressed={!isTree}
          variant={isTree ? 'subtle' : 'light'}
          onClick={() => onChange({ ...view, kind: 'list' })}
        >
          <IconList size={16} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label="Tree">
        <ActionIcon
          aria-label="Show as a tree"
          aria-pressed={isTree}
          variant={isTree ? 'light' : 'subtle'}
          onClick={() => onChange({ ...view, kind: 'tree' })}
        >
          <IconListTree size={16} />
        </ActionIcon>
      </Tooltip>
      {isTree ? (
        <TextInput
          aria-label="Separator"
          title="Separator of the folders"
          size="xs"
          w={44}
          maxLength={10}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          value={view.separator}
          onChange={(event) => onChange({ ...view, separator: event.currentTarget.value })}
        />
      ) : null}
    </Group>
  )
}

interface FoundProps {
  readonly plane: DataPlane
  readonly database: string
  readonly list: KeyList
  readonly version: number
  readonly search: KeySearch
  readonly chosen: KeyName | undefined
  readonly onChoose: (name: KeyName) => void
}

function Found({ plane, database, list, version, search, chosen, onChoose }: FoundProps) {
  const [task, setTask] = useState<SelectionTask | undefined>()
  const { tree, state, error } = list
  if (state === 'failed' && error && tree.count === 0)
    return <ErrorState error={error} onRetry={() => void list.more()} />
  return (
    <>
      <SelectionBar plane={plane} database={database} list={list} task={task} onTask={setTask} />
      {tree.count === 0 ? (
        <NoKeys search={search} isDone={state === 'done'} />
      ) : (
        <KeyGrid
          plane={plane}
          list={list}
          version={version}
          chosen={chosen}
          onChoose={onChoose}
          onDelete={() => setTask('delete')}
        />
      )}
      <Progress plane={plane} list={list} />
    </>
  )
}

function Progress({ plane, list }: { plane: DataPlane; list: KeyList }) {
  const total = useKeyCount(plane)
  const { state, error } = list
  return (
    <Group justify="space-between" px="md" py="xs" gap="xs">
      <Text size="xs" c={state === 'failed' ? 'var(--mantine-color-error)' : 'dimmed'} role="status">
        {list.isGrouping ? 'Grouping the keys. ' : ''}
        {state === 'failed'
          ? `The search stopped: ${error?.message}`
          : scannedText(state, list.tree.count, list.searched, total)}
      </Text>
      <SearchButtons list={list} />
    </Group>
  )
}

function SearchButtons({ list }: { list: KeyList }) {
  switch (list.state) {
    case 'searching':
      return (
        <Button size="compact-xs" variant="default" onClick={() => list.stop()}>
          Stop
        </Button>
      )
    case 'paused':
    case 'failed':
      return (
        <Group gap={6}>
          <Button size="compact-xs" variant="default" onClick={() => void list.more()}>
            Search further
          </Button>
          <Button size="compact-xs" variant="default" onClick={() => void list.all()}>
            Search all
          </Button>
        </Group>
      )
    case 'done':
    case 'full':
      return null
  }
}

function NoKeys({ search: { pattern, type }, isDone }: { search: KeySearch; isDone: boolean }) {
  if (!isDone)
    return <EmptyState title="No matches so far">Most keys have not been searched yet. Search further.</EmptyState>
  const isAll = pattern === '' && type === undefined
  return (
    <EmptyState title={isAll ? 'The database is empty' : 'No keys match'} icon={IconKey}>
      {isAll ? 'Create a key here, or write one with a client.' : 'In a pattern, * matches any characters.'}
    </EmptyState>
  )
}
