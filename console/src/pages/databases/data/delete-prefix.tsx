import { Button, Group, List, Modal, Progress, Stack, Text, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { Refusal } from '../../../components/states.js'
import { counted, whole } from '../../../lib/format.js'
import { type Collected, collectKeys, deleteKeys, MOST_COLLECTED } from './prefix.js'
import { refreshData } from './reads.js'

interface DeletePrefixProps {
  readonly plane: DataPlane
  readonly isOpen: boolean
  readonly onClose: () => void
}

/** Deletes all keys with a prefix: counts them first, then deletes exactly those. */
export function DeletePrefix({ isOpen, onClose, ...rest }: DeletePrefixProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Delete keys by prefix">
      <Search {...rest} onClose={onClose} />
    </Modal>
  )
}

/** Stops when the component unmounts: the user could not stop it any more. */
function useEnd(): AbortSignal {
  const [end, setEnd] = useState(() => new AbortController())
  useEffect(() => {
    // A component that mounts again needs a new signal.
    if (end.signal.aborted) setEnd(new AbortController())
    return () => end.abort()
  }, [end])
  return end.signal
}

function Search({ plane, onClose }: Omit<DeletePrefixProps, 'isOpen'>) {
  const end = useEnd()
  const [prefix, setPrefix] = useState('')
  const [searched, setSearched] = useState(0)
  const find = useTask(() => collectKeys(plane, prefix, setSearched, end), { errors: 'inline' })
  return (
    <Stack gap="md">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (prefix !== '') find.mutate()
        }}
      >
        <Group align="flex-end" gap="xs" wrap="nowrap">
          <TextInput
            label="Prefix"
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
            Count the keys
          </Button>
        </Group>
      </form>
      {find.isPending ? <Text size="sm">About {whole(searched)} keys searched. Nothing is deleted yet.</Text> : null}
      <Refusal error={find.error} />
      {find.data ? <Found plane={plane} found={find.data} onClose={onClose} /> : null}
    </Stack>
  )
}

interface FoundProps {
  readonly plane: DataPlane
  readonly found: Collected
  readonly onClose: () => void
}

function Found({ plane, found: { keys, unnamed }, onClose }: FoundProps) {
  const end = useEnd()
  const [typed, setTyped] = useState('')
  const [deleted, setDeleted] = useState(0)
  const remove = useTask(() => deleteKeys(plane, keys, setDeleted, end), {
    done: (count) => `${counted(count, 'key')} ${count === 1 ? 'was' : 'were'} deleted.`,
    onDone: () => {
      if (!end.aborted) onClose()
      void refreshData(plane)
    },
  })
  const kept =
    unnamed === 0
      ? ''
      : ` ${counted(unnamed, 'more key has a binary name', 'more keys have binary names')} and cannot be deleted here.`
  if (keys.length === 0) return <Text size="sm">No key begins like this. Nothing was deleted.{kept}</Text>
  return (
    <Stack gap="md">
      <Text size="sm">
        {counted(keys.length, 'key has', 'keys have')} this prefix
        {keys.length === MOST_COLLECTED ? '; there may be more' : ''}. Nothing is deleted yet.
        {kept}
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
          Cancel
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
