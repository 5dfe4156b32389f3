import { Alert, Button, Modal, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { NamedCode } from './copy.js'
import { useFocusBack } from './use-focus-back.js'

/** A secret and its label. */
export interface ShownSecret {
  readonly label: string
  readonly value: string
}

/** Shows secrets that cannot be shown again. A click beside the dialog does not close it. */
export function ShownOnce({
  title,
  secrets,
  isOpen,
  onClose,
  children,
}: {
  title: string
  secrets: readonly ShownSecret[]
  isOpen: boolean
  onClose: () => void
  children?: ReactNode
}) {
  useFocusBack(isOpen)
  return (
    <Modal opened={isOpen} onClose={onClose} title={title} closeOnClickOutside={false}>
      <Stack gap="md">
        <Alert color="yellow">
          <Text size="sm" c="inherit">
            Copy {secrets.length === 1 ? 'it' : 'them'} now. {secrets.length === 1 ? 'It' : 'They'} cannot be shown
            again.
          </Text>
        </Alert>
        {secrets.map(({ label, value }) => (
          <NamedCode key={label} code={value} label={label} />
        ))}
        {children}
        <Button onClick={onClose}>I have copied {secrets.length === 1 ? 'it' : 'them'}</Button>
      </Stack>
    </Modal>
  )
}
