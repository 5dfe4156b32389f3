import { Button, Group, Modal, type ModalProps, Stack } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import type { FormEvent, FormEventHandler, ReactNode } from 'react'
import { Refusal } from './states.js'
import { useFocusBack } from './use-focus-back.js'

/** A dialog with a form: the fields, the error of the server if there is one, and the two buttons. */
export function FormDialog({
  task,
  action,
  onSubmit,
  children,
  isReady = true,
  ...modal
}: {
  /** The change that the form makes; its error is shown in the dialog. */
  task: Pick<UseMutationResult<unknown, Error, never>, 'error' | 'isPending' | 'reset'>
  /** The verb on the button. */
  action: string
  onSubmit: FormEventHandler<HTMLFormElement>
  children: ReactNode
  isReady?: boolean
} & Pick<ModalProps, 'opened' | 'onClose' | 'title' | 'size'>) {
  useFocusBack(modal.opened)
  const close = () => {
    // Stay open while the request runs: otherwise its error would not be shown.
    if (task.isPending) return
    task.reset()
    modal.onClose()
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    const form = event.currentTarget
    onSubmit(event)
    requestAnimationFrame(() => focusRefused(form))
  }
  return (
    <Modal {...modal} onClose={close}>
      <form onSubmit={submit} noValidate>
        <Stack gap="md">
          {children}
          <Refusal error={task.error} />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close} disabled={task.isPending}>
              Cancel
            </Button>
            <Button type="submit" loading={task.isPending} disabled={!isReady}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

/** Focuses the field with the error: in a long form, it may be out of sight. */
function focusRefused(form: HTMLFormElement): void {
  form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
}
