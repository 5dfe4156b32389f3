import { Modal, Stack, Text, Textarea } from '@mantine/core'
import { useEffect, useState } from 'react'
import type { CommandLine, DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { PayloadView } from '../../../components/payload.js'
import { useFocusBack } from '../../../components/use-focus-back.js'
import { withLineEndsOf } from '../../../lib/line-ends.js'
import { payloadOfBytes } from '../../../lib/payload.js'
import { type Collection, type Element, type ElementField, textsOf } from './collections.js'
import { refreshData } from './reads.js'

/** The mode of the dialog. */
export type ElementTask =
  | { readonly kind: 'add' }
  | { readonly kind: 'change'; readonly element: Element }
  | { readonly kind: 'show'; readonly element: Element }

interface ElementDialogProps {
  readonly plane: DataPlane
  readonly name: string
  readonly collection: Collection
  readonly task: ElementTask | undefined
  readonly onClose: () => void
}

/** Adds, changes or shows one element. */
export function ElementDialog({ task, ...rest }: ElementDialogProps) {
  if (task?.kind === 'show') return <Shown element={task.element} collection={rest.collection} onClose={rest.onClose} />
  return <Edited {...rest} task={task} />
}

function Edited({ plane, name, collection, task, onClose }: ElementDialogProps & { task: ElementTask | undefined }) {
  const isChange = task?.kind === 'change'
  // Parts that the server assigns have no field.
  const parts = collection.parts.filter((part) => isChange || part.given !== true)
  const [values, setValues] = useState<readonly string[]>([])
  useEffect(() => {
    setValues(task?.kind === 'change' ? (textsOf(task.element) ?? []) : [])
  }, [task])
  const save = useTask(() => plane.run(linesOf(name, collection, task, values)), {
    errors: 'inline',
    onDone: () => {
      onClose()
      void refreshData(plane)
    },
  })
  const set = (index: number, value: string) =>
    setValues(parts.map((_, i) => (i === index ? value : (values[i] ?? ''))))
  return (
    <FormDialog
      opened={task !== undefined}
      onClose={onClose}
      title={isChange ? 'Change the element' : 'Add an element'}
      task={save}
      action={isChange ? 'Save' : 'Add'}
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate()
      }}
    >
      {parts.map((part, index) => (
        <PartInput
          key={part.key}
          part={part}
          isFixed={isChange && part.fixed === true}
          value={values[index] ?? ''}
          onChange={(value) => set(index, value)}
        />
      ))}
    </FormDialog>
  )
}

/** The commands of the change. */
function linesOf(
  name: string,
  { add, change }: Collection,
  task: ElementTask | undefined,
  values: readonly string[],
): readonly CommandLine[] {
  if (task?.kind !== 'change') return add(name, values)
  const before = textsOf(task.element) ?? []
  const given = values.map((value, index) => withLineEndsOf(before[index] ?? '', value))
  return change?.(name, task.element.id, given, before) ?? []
}

interface PartInputProps {
  readonly part: ElementField
  readonly isFixed: boolean
  readonly value: string
  readonly onChange: (value: string) => void
}

function PartInput({ part, isFixed, value, onChange }: PartInputProps) {
  return (
    <Textarea
      label={part.label}
      autosize
      minRows={1}
      maxRows={14}
      disabled={isFixed}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
    />
  )
}

function Shown({ element, collection, onClose }: { element: Element; collection: Collection; onClose: () => void }) {
  useFocusBack(true)
  return (
    <Modal opened onClose={onClose} title="Element" size="lg">
      <Stack gap="md">
        {collection.parts.map(({ key, label }, index) => (
          <Stack key={key} gap={4}>
            <Text size="sm" fw={550}>
              {label}
            </Text>
            <PayloadView payload={payloadOfBytes(element.cells[index] ?? new Uint8Array())} label={label} />
          </Stack>
        ))}
      </Stack>
    </Modal>
  )
}
