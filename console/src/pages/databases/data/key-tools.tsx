import IconPlus from 'icon:plus'
import IconRefresh from 'icon:refresh'
import { ActionIcon, Button, Group, Tooltip } from '@mantine/core'
import { useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { RowMenu } from '../../../components/row-menu.js'
import { DeletePrefix } from './delete-prefix.js'
import { ExportDialog } from './export-dialog.js'
import { ImportDialog } from './import-dialog.js'
import type { KeySearch } from './keys.js'
import { NewKey } from './new-key.js'
import { useKeyCount } from './reads.js'

interface ToolsProps {
  readonly plane: DataPlane
  readonly database: string
  readonly search: KeySearch
  readonly onMade: (name: KeyName) => void
  readonly onDeleted: (names: readonly KeyName[]) => void
  readonly onAgain: () => void
}

type Tool = 'make' | 'delete' | 'export' | 'import'

/** The actions above the list of keys. */
export function KeyTools({ plane, database, search, onMade, onDeleted, onAgain }: ToolsProps) {
  const [tool, setTool] = useState<Tool | undefined>()
  const total = useKeyCount(plane)
  const close = () => setTool(undefined)
  const isAll = search.pattern === '' && search.type === undefined
  return (
    <Group gap={6}>
      <Tooltip label="Refresh">
        <ActionIcon size="md" aria-label="Refresh the keys" onClick={onAgain}>
          <IconRefresh size={16} />
        </ActionIcon>
      </Tooltip>
      <Button size="compact-sm" leftSection={<IconPlus size={14} />} onClick={() => setTool('make')}>
        Create a key
      </Button>
      <RowMenu
        of="the keys"
        actions={[
          { label: isAll ? 'Export all keys' : 'Export the matching keys', onClick: () => setTool('export') },
          { label: 'Import keys', onClick: () => setTool('import') },
          { label: 'Delete by prefix', onClick: () => setTool('delete'), isDangerous: true },
        ]}
      />
      <NewKey plane={plane} isOpen={tool === 'make'} onClose={close} onMade={onMade} />
      <DeletePrefix plane={plane} isOpen={tool === 'delete'} onClose={close} onDeleted={onDeleted} />
      <ExportDialog
        plane={plane}
        database={database}
        what={tool === 'export' ? { kind: 'search', search, total } : undefined}
        onClose={close}
      />
      <ImportDialog plane={plane} database={database} isOpen={tool === 'import'} onClose={close} onImported={onAgain} />
    </Group>
  )
}
