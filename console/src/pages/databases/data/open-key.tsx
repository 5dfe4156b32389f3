import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { Panel } from '../../../components/page.js'
import { counted } from '../../../lib/format.js'
import { useKeyCount } from './reads.js'

/** Replaces the list for users who may read keys but not list them. */
export function OpenKey({ plane, onChoose }: { plane: DataPlane; onChoose: (name: string) => void }) {
  const [name, setName] = useState('')
  const total = useKeyCount(plane)
  return (
    <Panel title="Open a key">
      <Stack gap="sm">
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (name !== '') onChoose(name)
          }}
        >
          <Group gap="xs" wrap="nowrap">
            <TextInput
              data-search
              aria-label="Key name"
              placeholder="user:1"
              flex={1}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" disabled={name === ''}>
              Open
            </Button>
          </Group>
        </form>
        <Text size="sm" c="dimmed">
          {counted(total, 'key')} here. The read-only token can open keys by name but cannot list them.
        </Text>
      </Stack>
    </Panel>
  )
}
