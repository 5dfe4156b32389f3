import { Alert, Button, Group, List, Modal, Progress, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { counted, whole } from '../../../lib/format.js'
import { collectKeys, deleteKeys, MOST_COLLECTED } from './prefix.js'
import { refreshData } from './reads.js'

interface DeletePrefixProps {
  readonly plane: DataPlane
  readonly isOpen: boolean
  readonly onClose: () => void
}

/** Deletes all keys that begin alike: first counts them, then deletes exactly those. */
export function DeletePrefix({ plane, isOpen, onClose }: DeletePrefixProps) {
  const [prefix, setPrefix] = useState('')
  const [looked, setLooked] = useState(0)
  const find = useTask(() => collectKeys(plane, prefix, setLooked), { errors: 'inline' })
  const close = () => {
    find.reset()
    setPrefix('')
    onClose()
  }
  return (
    <Modal opened={isOpen} onClose={close} title="Delete keys by prefix">
      <Stack gap="md">
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (prefix !== '') find.mutate()
          }}
        >
          <Group align="flex-end" gap="xs" wrap="nowrap">
            <TextInput
              label="Keys that begin with"
              placeholder="session:"
              flex={1}
              data-autofocus
              value={prefix}
              onChange={(event) => {
                setPrefix(event.currentTarget.value)
                find.reset()
              }}
            />
            <Button type="submit" variant="default" disabled={prefix === ''} loading={find.isPending}>
              Count them
            </Button>
          </Group>
        </form>
        {find.isPending ? <Text size="sm">About {whole(looked)} keys looked at. Nothing is deleted yet.</Text> : null}
        {find.error ? <Alert color="red">{find.error.message}</Alert> : null}
        {find.data ? <Found plane={plane} keys={find.data} onClose={close} /> : null}
      </Stack>
    </Modal>
  )
}

function Found({ plane, keys, onClose }: { plane: DataPlane; keys: readonly string[]; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [deleted, setDeleted] = useState(0)
  const remove = useTask(() => deleteKeys(plane, keys, setDeleted), {
    done: (count) => `${counted(count, 'key')} deleted.`,
    onDone: () => {
      onClose()
      void refreshData(plane)
    },
  })
  if (keys.length === 0) return <Text size="sm">No key begins like this. Nothing was deleted.</Text>
  return (
    <Stack gap="md">
      <Text size="sm">
        {counted(keys.length, 'key begins', 'keys begin')} like this
        {keys.length === MOST_COLLECTED ? '; these are the first, and there may be more' : ''}. Nothing is deleted yet.
      </Text>
      <List size="sm" ff="monospace">
        {keys.slice(0, 5).map((key) => (
          <List.Item key={key}>{key}</List.Item>
        ))}
      </List>
      <TextInput
        label={
          <>
            Type <b>{keys.length}</b> to delete them
          </>
        }
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        autoComplete="off"
      />
      {remove.isPending ? <Progress value={(deleted / keys.length) * 100} aria-label="Keys deleted" /> : null}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          Keep them
        </Button>
        <Button
          color="red.9"
          disabled={typed.trim() !== String(keys.length)}
          loading={remove.isPending}
          onClick={() => remove.mutate()}
        >
          Delete {counted(keys.length, 'key')}
        </Button>
      </Group>
    </Stack>
  )
}
