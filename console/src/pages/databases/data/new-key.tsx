import { Select, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { CommandLine, DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { textOf } from '../../../lib/resp.js'
import { COLLECTIONS, type ElementField } from './collections.js'
import { KEY_TYPES, type KeyType } from './keys.js'
import { refreshData } from './reads.js'

const STRING_PARTS: readonly ElementField[] = [{ key: 'value', label: 'Value' }]

const partsOf = (type: KeyType): readonly ElementField[] =>
  type === 'string' ? STRING_PARTS : COLLECTIONS[type].parts.filter(({ given }) => given !== true)

const linesOf = (type: KeyType, name: string, values: readonly string[]): CommandLine[] =>
  type === 'string' ? [['SET', name, values[0] ?? '']] : COLLECTIONS[type].add(name, values)

interface NewKeyProps {
  readonly plane: DataPlane
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onMade: (name: string) => void
}

/** Creates a key with a first value. An existing key is not changed. */
export function NewKey({ plane, isOpen, onClose, onMade }: NewKeyProps) {
  const [name, setName] = useState('')
  const [type, setType] = useState<KeyType>('string')
  const [values, setValues] = useState<readonly string[]>([])
  const make = useTask(() => makeKey(plane, name, linesOf(type, name, values)), {
    errors: 'inline',
    onDone: () => {
      onMade(name)
      onClose()
      setName('')
      setValues([])
      void refreshData(plane)
    },
  })
  const parts = partsOf(type)
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a key"
      task={make}
      action="Create the key"
      isReady={name !== ''}
      onSubmit={(event) => {
        event.preventDefault()
        if (name !== '') make.mutate()
      }}
    >
      <TextInput
        label="Key"
        placeholder="user:1"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Select
        label="Type"
        data={[...KEY_TYPES]}
        value={type}
        onChange={(value) => setType(KEY_TYPES.find((known) => known === value) ?? 'string')}
      />
      {parts.map((part, index) => (
        <Textarea
          key={part.key}
          label={part.label}
          autosize
          minRows={1}
          maxRows={12}
          value={values[index] ?? ''}
          onChange={(event) => {
            const { value } = event.currentTarget
            setValues(parts.map((_, i) => (i === index ? value : (values[i] ?? ''))))
          }}
        />
      ))}
    </FormDialog>
  )
}

async function makeKey(plane: DataPlane, name: string, lines: readonly CommandLine[]): Promise<void> {
  if (textOf(await plane.send('EXISTS', name)) === '1')
    throw new Error('A key with this name exists already. Choose another name.')
  await plane.run(lines)
}
