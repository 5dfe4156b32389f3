import IconClock from 'icon:clock'
import IconDownload from 'icon:download'
import IconTrash from 'icon:trash'
import IconX from 'icon:x'
import { ActionIcon, Button, Group, Text } from '@mantine/core'
import { useMemo, useRef } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { counted } from '../../../lib/format.js'
import { DeleteSelected } from './delete-keys.js'
import { ExpireKeys } from './expire-keys.js'
import { ExportDialog } from './export-dialog.js'
import type { KeyList } from './key-list.js'
import type { KeyTree } from './key-tree.js'

/** An action on the selected keys. */
export type SelectionTask = 'delete' | 'expire' | 'export'

interface SelectionBarProps {
  readonly plane: DataPlane
  readonly database: string
  readonly list: KeyList
  readonly task: SelectionTask | undefined
  readonly onTask: (task: SelectionTask | undefined) => void
}

/** The names that were selected when the dialog was opened. The dialog shows them until it has closed. */
function useNamesAtOpening(tree: KeyTree, task: SelectionTask | undefined): readonly KeyName[] {
  const last = useRef<readonly KeyName[]>([])
  return useMemo(() => {
    if (task !== undefined) last.current = [...tree.selected]
    return last.current
  }, [task, tree])
}

/** Actions on the selected keys; empty while none is selected. */
export function SelectionBar({ plane, database, list, task, onTask }: SelectionBarProps) {
  const { tree } = list
  const names = useNamesAtOpening(tree, task)
  const close = () => onTask(undefined)
  const count = tree.selected.size
  return (
    <>
      {count === 0 ? null : (
        <Group gap={6} px="md" pb="xs" role="group" aria-label="Selected keys">
          <Text size="sm" fw={550} role="status" mr="auto">
            {counted(count, 'key')} selected
          </Text>
          <Button
            size="compact-xs"
            variant="default"
            leftSection={<IconClock size={13} />}
            onClick={() => onTask('expire')}
          >
            Expiry
          </Button>
          <Button
            size="compact-xs"
            variant="default"
            leftSection={<IconDownload size={13} />}
            onClick={() => onTask('export')}
          >
            Export
          </Button>
          <Button
            size="compact-xs"
            variant="default"
            c="var(--mantine-color-error)"
            leftSection={<IconTrash size={13} />}
            onClick={() => onTask('delete')}
          >
            Delete
          </Button>
          <ActionIcon
            size="sm"
            aria-label="Clear the selection"
            onClick={() => list.change((changed) => changed.selectAll(false))}
          >
            <IconX size={14} />
          </ActionIcon>
        </Group>
      )}
      <DeleteSelected
        plane={plane}
        names={names}
        isOpen={task === 'delete'}
        onClose={close}
        onDeleted={(gone) => list.remove(gone)}
      />
      <ExpireKeys plane={plane} names={names} isOpen={task === 'expire'} onClose={close} />
      <ExportDialog
        plane={plane}
        database={database}
        what={task === 'export' ? { kind: 'names', names } : undefined}
        onClose={close}
      />
    </>
  )
}
