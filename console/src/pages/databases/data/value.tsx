import IconDownload from 'icon:download'
import IconTrash from 'icon:trash'
import { ActionIcon, Alert, Badge, Button, Group, Stack, Text, Tooltip } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMemo } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { confirm } from '../../../components/confirm.js'
import { Copy } from '../../../components/copy.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Loaded } from '../../../components/states.js'
import { Term } from '../../../components/term.js'
import { bytes } from '../../../lib/format.js'
import { collectionOf } from './collections.js'
import { Expiry } from './expiry.js'
import { ExportDialog } from './export-dialog.js'
import { type OpenKeyFacts, refreshData, useKeyFacts } from './reads.js'
import { shownName } from './shown-name.js'
import { ElementsValue } from './value-elements.js'
import { StringValue } from './value-string.js'

interface ValuePanelProps {
  readonly plane: DataPlane
  /** The name of the database, for files. */
  readonly database: string
  readonly name: string
  readonly onGone: () => void
}

/** One key: its metadata, expiry and value. */
export function ValuePanel({ plane, database, name, onGone }: ValuePanelProps) {
  const facts = useKeyFacts(plane, name)
  return (
    <Panel>
      <Stack gap="md">
        <Group gap={4} wrap="nowrap">
          <Text fw={600} ff="monospace" className="truncate" component="h2">
            {shownName(name)}
          </Text>
          <Copy value={shownName(name)} what="the key name" />
          <ExportOne plane={plane} database={database} name={name} />
        </Group>
        <Loaded query={facts}>
          {(known) =>
            known.type === 'none' ? (
              <EmptyState title="Key not found">It was deleted, has expired, or never existed.</EmptyState>
            ) : (
              <Open plane={plane} name={name} facts={known} onGone={onGone} />
            )
          }
        </Loaded>
      </Stack>
    </Panel>
  )
}

function ExportOne({ plane, database, name }: Omit<ValuePanelProps, 'onGone'>) {
  const [isOpen, { open, close }] = useDisclosure()
  const what = useMemo(() => ({ kind: 'names', names: [name] }) as const, [name])
  return (
    <>
      <Tooltip label="Export">
        <ActionIcon aria-label="Export the key" onClick={open}>
          <IconDownload size={15} />
        </ActionIcon>
      </Tooltip>
      <ExportDialog plane={plane} database={database} what={isOpen ? what : undefined} onClose={close} />
    </>
  )
}

interface OpenProps extends Omit<ValuePanelProps, 'database'> {
  readonly facts: OpenKeyFacts
}

function Open({ plane, name, facts, onGone }: OpenProps) {
  const remove = () =>
    confirm({
      title: 'Delete the key',
      text: (
        <>
          <Term>{shownName(name)}</Term> and its value are deleted. This cannot be undone.
        </>
      ),
      action: 'Delete the key',
      onConfirm: async () => {
        await plane.send('UNLINK', name)
        onGone()
        await refreshData(plane)
      },
    })
  return (
    <>
      <Group gap="xs">
        <Badge color="gray">{facts.type}</Badge>
        <Badge color="gray" variant="default">
          {bytes(facts.memoryBytes)} in memory
        </Badge>
        <Expiry plane={plane} name={name} expiresAtMs={facts.expiresAtMs} />
        {plane.canWrite ? (
          <Button
            size="compact-xs"
            variant="subtle"
            color="red.9"
            c="var(--mantine-color-error)"
            leftSection={<IconTrash size={13} />}
            onClick={remove}
            ml="auto"
          >
            Delete the key
          </Button>
        ) : null}
      </Group>
      <Value plane={plane} name={name} type={facts.type} />
    </>
  )
}

function Value({ plane, name, type }: { plane: DataPlane; name: string; type: string }) {
  const collection = collectionOf(type)
  if (collection) return <ElementsValue plane={plane} name={name} type={type} collection={collection} />
  if (type === 'string') return <StringValue plane={plane} name={name} />
  return (
    <Alert color="gray">
      Values of type {type} cannot be shown here. Send a command instead, such as <Term>JSON.GET</Term>.
    </Alert>
  )
}
