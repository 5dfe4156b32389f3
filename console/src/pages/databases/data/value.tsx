import IconTrash from 'icon:trash'
import { Alert, Badge, Button, Group, Stack, Text } from '@mantine/core'
import type { DataPlane } from '../../../api/data-plane.js'
import { confirm } from '../../../components/confirm.js'
import { Copy } from '../../../components/copy.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Loaded } from '../../../components/states.js'
import { Term } from '../../../components/term.js'
import { bytes } from '../../../lib/format.js'
import { collectionOf } from './collections.js'
import { Expiry } from './expiry.js'
import { type KeyFacts, refreshData, useKeyFacts } from './reads.js'
import { ElementsValue } from './value-elements.js'
import { StringValue } from './value-string.js'

/** One key: its metadata, expiry and value. */
export function ValuePanel({ plane, name, onGone }: { plane: DataPlane; name: string; onGone: () => void }) {
  const facts = useKeyFacts(plane, name)
  return (
    <Panel>
      <Stack gap="md">
        <Group gap={4} wrap="nowrap">
          <Text fw={600} ff="monospace" className="truncate" component="h2">
            {name}
          </Text>
          <Copy value={name} what="the key name" />
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

interface OpenProps {
  readonly plane: DataPlane
  readonly name: string
  readonly facts: KeyFacts
  readonly onGone: () => void
}

function Open({ plane, name, facts, onGone }: OpenProps) {
  const remove = () =>
    confirm({
      title: 'Delete the key',
      text: (
        <>
          <Term>{name}</Term> and its value are deleted. There is no way back.
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
