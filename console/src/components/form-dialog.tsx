import { Alert, Button, Group, Modal, type ModalProps, Stack } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import type { FormEventHandler, ReactNode } from 'react'

/** A dialog with a form: the fields, the refusal of the server if there is one, and the two buttons. */
export function FormDialog({
  task,
  action,
  onSubmit,
  children,
  note,
  isReady = true,
  ...modal
}: {
  /** The change that the form makes; its refusal is shown in the dialog. */
  task: Pick<UseMutationResult<unknown, Error, never>, 'error' | 'isPending' | 'reset'>
  /** The verb on the button. */
  action: string
  onSubmit: FormEventHandler<HTMLFormElement>
  children: ReactNode
  /** Beside the buttons, such as a price. */
  note?: ReactNode
  isReady?: boolean
} & Pick<ModalProps, 'opened' | 'onClose' | 'title' | 'size'>) {
  const close = () => {
    task.reset()
    modal.onClose()
  }
  return (
    <Modal {...modal} onClose={close}>
      <form onSubmit={onSubmit} noValidate>
        <Stack gap="md">
          {children}
          {task.error ? (
            <Alert color="red" role="alert">
              {task.error.message}
            </Alert>
          ) : null}
          <Group justify="space-between" gap="sm">
            <div>{note}</div>
            <Group gap="xs" ml="auto">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button type="submit" loading={task.isPending} disabled={!isReady}>
                {action}
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
