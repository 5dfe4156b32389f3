import IconEye from 'icon:eye'
import IconPencil from 'icon:pencil'
import IconPlus from 'icon:plus'
import IconTrash from 'icon:trash'
import { ActionIcon, Button, Group, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { confirm } from '../../../components/confirm.js'
import type { Column } from '../../../components/data-table.js'
import { PagedTable } from '../../../components/paged-table.js'
import { EmptyState } from '../../../components/states.js'
import { counted, whole } from '../../../lib/format.js'
import { lineEndsOf } from '../../../lib/line-ends.js'
import { escaped } from '../../../lib/resp.js'
import { type Collection, type Element, textsOf } from './collections.js'
import { ElementDialog, type ElementTask } from './element-dialog.js'
import { refreshData, useElementCount, useElements } from './reads.js'
import { shownName } from './shown-name.js'

interface ElementsProps {
  readonly plane: DataPlane
  readonly name: string
  readonly type: string
  readonly collection: Collection
}

/** A value that has elements: hash, list, set, sorted set or stream. */
export function ElementsValue({ plane, name, type, collection }: ElementsProps) {
  const [task, setTask] = useState<ElementTask | undefined>()
  const elements = useElements(plane, name, type, collection)
  const count = useElementCount(plane, name, type, collection)
  const rows = useMemo(
    () => uniqueElements(elements.data?.pages.flatMap((page) => page.elements) ?? []),
    [elements.data],
  )
  const columns = useMemo(() => columnsFor({ plane, name, type, collection }, setTask), [plane, name, type, collection])
  return (
    <div>
      <Group justify="space-between" mb="xs">
        <Text size="sm" c="dimmed">
          {whole(rows.length)} of {counted(count.data ?? rows.length, 'element')} read
        </Text>
        {plane.canWrite ? (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconPlus size={14} />}
            onClick={() => setTask({ kind: 'add' })}
          >
            Add
          </Button>
        ) : null}
      </Group>
      <PagedTable
        label={`Elements of ${shownName(name)}`}
        columns={columns}
        pages={elements}
        rows={elements.data && rows}
        rowKey={({ id }) => id}
        maxHeight="calc(100dvh - 420px)"
        empty={<EmptyState title="No elements" />}
      />
      <ElementDialog plane={plane} name={name} collection={collection} task={task} onClose={() => setTask(undefined)} />
    </div>
  )
}

/** HSCAN and SSCAN may find an element twice. */
const uniqueElements = (elements: readonly Element[]): readonly Element[] => [
  ...new Map(elements.map((element) => [element.id, element])).values(),
]

/** Longer cells are cut; the dialog shows the whole text. */
const MAX_SHOWN = 200

function columnsFor(
  { plane, name, collection }: ElementsProps,
  onTask: (task: ElementTask) => void,
): Column<Element>[] {
  const parts = collection.parts.map(
    ({ key, label }, index): Column<Element> => ({
      key,
      title: label.split(',')[0] ?? label,
      ...(['index', 'score'].includes(key) ? { width: '110px' } : key === 'id' ? { width: '170px' } : {}),
      render: ({ cells }) => {
        const cell = cells[index] ?? new Uint8Array()
        return <code>{escaped(cell.subarray(0, MAX_SHOWN))}</code>
      },
    }),
  )
  const actions: Column<Element> = {
    key: 'actions',
    title: '',
    width: plane.canWrite ? '92px' : '56px',
    align: 'right',
    render: (element) => (
      <Actions plane={plane} name={name} collection={collection} element={element} onTask={onTask} />
    ),
  }
  return [...parts, actions]
}

interface ActionsProps {
  readonly plane: DataPlane
  readonly name: string
  readonly collection: Collection
  readonly element: Element
  readonly onTask: (task: ElementTask) => void
}

function Actions({ plane, name, collection, element, onTask }: ActionsProps) {
  const values = textsOf(element)
  const isEditable = values?.every((text) => lineEndsOf(text) !== 'mixed') === true
  const canChange = plane.canWrite && isEditable && collection.change !== undefined
  const remove = () =>
    confirm({
      title: 'Remove the element',
      text: 'This cannot be undone.',
      action: 'Remove the element',
      onConfirm: async () => {
        await plane.run(collection.remove(name, element.id, values ?? []))
        await refreshData(plane)
      },
    })
  return (
    <Group gap={2} justify="flex-end" wrap="nowrap">
      <ActionIcon
        aria-label={`${canChange ? 'Edit' : 'Show'} ${element.id}`}
        onClick={() => onTask({ kind: canChange ? 'change' : 'show', element })}
      >
        {canChange ? <IconPencil size={15} /> : <IconEye size={15} />}
      </ActionIcon>
      {plane.canWrite && values !== undefined ? (
        <ActionIcon aria-label={`Remove ${element.id}`} onClick={remove}>
          <IconTrash size={15} />
        </ActionIcon>
      ) : null}
    </Group>
  )
}
