import { Button, Group, List, Modal, Progress, Stack, Text, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { Refusal } from '../../../components/states.js'
import { counted } from '../../../lib/format.js'
import { changeKeys } from './prefix.js'
import { refreshData } from './reads.js'
import { shownName } from './shown-name.js'

const EXAMPLES = 5

/** A signal that aborts work when the component unmounts, because the user could no longer stop it. */
export function useEnd(): AbortSignal {
  const [end, setEnd] = useState(() => new AbortController())
  useEffect(() => {
    // A component that mounts again needs a new signal.
    if (end.signal.aborted) setEnd(new AbortController())
    return () => end.abort()
  }, [end])
  return end.signal
}

interface DeleteKeysProps {
  readonly plane: DataPlane
  readonly names: readonly KeyName[]
  /** How the keys were found, such as `3 keys are selected`. */
  readonly found: string
  readonly onClose: () => void
  readonly onDeleted: (names: readonly KeyName[]) => void
}

/** Deletes exactly these keys, after the user has typed their number. */
export function DeleteKeys({ plane, names, found, onClose, onDeleted }: DeleteKeysProps) {
  const end = useEnd()
  const [typed, setTyped] = useState('')
  const [deleted, setDeleted] = useState(0)
  const remove = useTask(() => changeKeys(names, (some) => plane.keys.unlink(some), setDeleted, end), {
    errors: 'inline',
    done: ({ changed }) => `${counted(changed, 'key')} ${changed === 1 ? 'was' : 'were'} deleted.`,
    onDone: (done) => {
      onDeleted(done.names)
      if (!end.aborted) onClose()
      void refreshData(plane)
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (typed.trim() === String(names.length)) remove.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm">{found}. Nothing is deleted yet.</Text>
        <Examples names={names} />
        <TextInput
          label={
            <>
              Type <b>{names.length}</b> to delete {names.length === 1 ? 'it' : 'them'}
            </>
          }
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
        />
        {remove.isPending ? <Progress value={(deleted / names.length) * 100} aria-label="Keys deleted" /> : null}
        <Refusal error={remove.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            color="red.9"
            disabled={typed.trim() !== String(names.length)}
            loading={remove.isPending}
          >
            Delete {counted(names.length, 'key')}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

/** The first few of many names. */
export function Examples({ names }: { names: readonly KeyName[] }) {
  const more = names.length - EXAMPLES
  return (
    <List size="sm" ff="monospace">
      {names.slice(0, EXAMPLES).map((name) => (
        <List.Item key={name}>{shownName(name)}</List.Item>
      ))}
      {more > 0 ? <List.Item>and {counted(more, 'more', 'more')}</List.Item> : null}
    </List>
  )
}

interface DeleteSelectedProps extends Omit<DeleteKeysProps, 'found'> {
  readonly isOpen: boolean
}

/** Deletes the selected keys. */
export function DeleteSelected({ isOpen, ...rest }: DeleteSelectedProps) {
  const found = `${counted(rest.names.length, 'key is', 'keys are')} selected`
  return (
    <Modal opened={isOpen} onClose={rest.onClose} title="Delete the selected keys">
      <DeleteKeys {...rest} found={found} />
    </Modal>
  )
}
