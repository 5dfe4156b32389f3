import IconKey from 'icon:key'
import IconPlus from 'icon:plus'
import IconRefresh from 'icon:refresh'
import IconSearch from 'icon:search'
import IconTrash from 'icon:trash'
import { ActionIcon, Badge, Button, Group, Select, SimpleGrid, Stack, Text, TextInput, Tooltip } from '@mantine/core'
import { useDebouncedValue, useDisclosure } from '@mantine/hooks'
import { useMemo, useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { CellButton } from '../../../components/cell-buttons.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, ErrorState, LoadingLines } from '../../../components/states.js'
import { DeletePrefix } from './delete-prefix.js'
import { type FoundKey, KEY_TYPES, type KeySearch, type KeyType, scannedText } from './keys.js'
import { NewKey } from './new-key.js'
import { OpenKey } from './open-key.js'
import { refreshData, useKeyCount, useKeys } from './reads.js'
import { ValuePanel } from './value.js'

/** The key browser: keys on the left, the value of the selected one on the right. */
export function Browse({ plane }: { plane: DataPlane }) {
  const [chosen, setChosen] = useState<string | undefined>()
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      {plane.canWrite ? (
        <Keys plane={plane} chosen={chosen} onChoose={setChosen} />
      ) : (
        <OpenKey plane={plane} onChoose={setChosen} />
      )}
      <Stack miw={0}>
        {chosen === undefined ? (
          <Panel>
            <EmptyState title="No key selected" icon={IconKey}>
              {plane.canWrite ? 'Select a key to see its value, or create one.' : 'Open a key by its name.'}
            </EmptyState>
          </Panel>
        ) : (
          <ValuePanel key={chosen} plane={plane} name={chosen} onGone={() => setChosen(undefined)} />
        )}
      </Stack>
    </SimpleGrid>
  )
}

interface KeysProps {
  readonly plane: DataPlane
  readonly chosen: string | undefined
  readonly onChoose: (name: string | undefined) => void
}

function Keys({ plane, chosen, onChoose }: KeysProps) {
  const [typed, setTyped] = useState('')
  const [type, setType] = useState<KeyType | undefined>()
  const [pattern] = useDebouncedValue(typed.trim(), 300)
  const search = useMemo((): KeySearch => ({ pattern, type }), [pattern, type])
  return (
    <Panel flush title="Keys" actions={<KeyTools plane={plane} onMade={onChoose} />}>
      <Group gap="xs" px="md" pb="sm" wrap="nowrap">
        <TextInput
          data-search
          aria-label="Pattern"
          placeholder="Pattern, such as user:*"
          size="xs"
          flex={1}
          leftSection={<IconSearch size={14} />}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Select
          aria-label="Type"
          size="xs"
          w={110}
          data={[{ value: '', label: 'All types' }, ...KEY_TYPES.map((value) => ({ value, label: value }))]}
          value={type ?? ''}
          onChange={(value) => setType(KEY_TYPES.find((known) => known === value))}
        />
      </Group>
      <FoundKeys plane={plane} search={search} chosen={chosen} onChoose={onChoose} />
    </Panel>
  )
}

function KeyTools({ plane, onMade }: { plane: DataPlane; onMade: (name: string) => void }) {
  const [isMaking, making] = useDisclosure()
  const [isDeleting, deleting] = useDisclosure()
  return (
    <Group gap={6}>
      <Tooltip label="Refresh">
        <ActionIcon size="md" aria-label="Refresh the keys" onClick={() => void refreshData(plane)}>
          <IconRefresh size={16} />
        </ActionIcon>
      </Tooltip>
      {plane.canWrite ? (
        <>
          <Button size="compact-sm" variant="default" leftSection={<IconTrash size={14} />} onClick={deleting.open}>
            Delete by prefix
          </Button>
          <Button size="compact-sm" leftSection={<IconPlus size={14} />} onClick={making.open}>
            Create a key
          </Button>
        </>
      ) : null}
      <NewKey plane={plane} isOpen={isMaking} onClose={making.close} onMade={onMade} />
      <DeletePrefix plane={plane} isOpen={isDeleting} onClose={deleting.close} />
    </Group>
  )
}

interface FoundKeysProps extends KeysProps {
  readonly search: KeySearch
}

function FoundKeys({ plane, search, chosen, onChoose }: FoundKeysProps) {
  const keys = useKeys(plane, search)
  const total = useKeyCount(plane)
  const found = useMemo(() => unique(keys.data?.pages.flatMap((page) => page.keys) ?? []), [keys.data])
  if (keys.isPending) return <LoadingLines />
  if (keys.isError) return <ErrorState error={keys.error} onRetry={() => void keys.refetch()} />
  return (
    <>
      <DataTable
        label="Keys"
        columns={columnsFor(onChoose)}
        rows={found}
        rowKey={({ shown }) => shown}
        onOpen={({ name }) => onChoose(name)}
        isSelected={({ name }) => name !== undefined && name === chosen}
        maxHeight="calc(100dvh - 430px)"
        empty={<NoKeys search={search} isDone={!keys.hasNextPage} />}
      />
      <Group justify="space-between" px="md" py="xs" gap="xs">
        <Text size="xs" c="dimmed" role="status">
          {scannedText(keys.data.pages, total)}
        </Text>
        {keys.hasNextPage ? (
          <Button
            size="compact-xs"
            variant="default"
            loading={keys.isFetchingNextPage}
            onClick={() => void keys.fetchNextPage()}
          >
            Search further
          </Button>
        ) : null}
      </Group>
    </>
  )
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

/** SCAN may find a key twice. */
const unique = (keys: readonly FoundKey[]): FoundKey[] => [...new Map(keys.map((key) => [key.shown, key])).values()]

function columnsFor(onChoose: (name: string) => void): Column<FoundKey>[] {
  return [
    {
      key: 'name',
      title: 'Key',
      render: ({ name, shown }) =>
        name === undefined ? (
          <Text size="sm" c="dimmed" span>
            {shown}
          </Text>
        ) : (
          <CellButton onClick={() => onChoose(name)}>{shown}</CellButton>
        ),
    },
    { key: 'type', title: 'Type', width: '110px', render: ({ type }) => <Badge color="gray">{type}</Badge> },
  ]
}
