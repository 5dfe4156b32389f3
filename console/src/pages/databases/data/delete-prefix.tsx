import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { Refusal } from '../../../components/states.js'
import { counted, whole } from '../../../lib/format.js'
import { DeleteKeys, useEnd } from './delete-keys.js'
import { collectKeys, MAX_COLLECTED } from './prefix.js'

interface DeletePrefixProps {
  readonly plane: DataPlane
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onDeleted: (names: readonly KeyName[]) => void
}

/** Deletes all keys with a prefix: first counts the keys, then deletes exactly the counted ones. */
export function DeletePrefix({ isOpen, onClose, ...rest }: DeletePrefixProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Delete keys by prefix">
      <Search {...rest} onClose={onClose} />
    </Modal>
  )
}

function Search({ plane, onClose, onDeleted }: Omit<DeletePrefixProps, 'isOpen'>) {
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
      {find.data === undefined ? null : find.data.length === 0 ? (
        <Text size="sm">No key begins like this. Nothing was deleted.</Text>
      ) : (
        <DeleteKeys
          plane={plane}
          names={find.data}
          found={foundText(find.data)}
          onClose={onClose}
          onDeleted={onDeleted}
        />
      )}
    </Stack>
  )
}

const foundText = ({ length }: readonly KeyName[]): string =>
  `${counted(length, 'key has', 'keys have')} this prefix${length === MAX_COLLECTED ? '; there may be more' : ''}`
