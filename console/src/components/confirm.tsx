import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { modals } from '@mantine/modals'
import { notifications } from '@mantine/notifications'
import { type ReactNode, useState } from 'react'
import type { Endpoint } from '../../../src/contract/endpoint.js'
import { ApiError } from '../api/client.js'
import { useTask } from '../api/hooks.js'
import { Refusal } from './states.js'
import { useFocusBack } from './use-focus-back.js'
import { useHistoryNavigation } from './use-history-navigation.js'

/** A confirmation before a change that cannot be undone. */
export interface Question {
  readonly title: string
  /** The consequences. */
  readonly text: ReactNode
  /** The verb on the button: `Delete the database`. */
  readonly action: string
  /** A word to type first, such as the name of what is deleted. */
  readonly typed?: string
  /** Runs the action. The dialog stays open while it runs, and shows the error when it fails. */
  readonly onConfirm: () => Promise<unknown>
  /** Endpoints to read again afterwards. */
  readonly refreshes?: readonly Pick<Endpoint, 'id'>[]
}

/** Opens the confirmation of a destructive action. */
export function confirm(question: Question): void {
  // If the button is pressed again before the dialog has the focus, the second dialog replaces the first.
  modals.closeAll()
  const id = modals.open({
    title: question.title,
    children: <ConfirmBody question={question} onClose={() => modals.close(id)} />,
  })
}

function ConfirmBody({ question, onClose }: { question: Question; onClose: () => void }) {
  const { text, action, typed, onConfirm, refreshes = [] } = question
  useFocusBack(true)
  const [word, setWord] = useState('')
  const task = useTask(() => onConfirm().catch(passIfGone), { refreshes, errors: 'inline', onDone: onClose })
  // The dialog stays open while the action runs, so that it can show the error.
  useHistoryNavigation(() => task.isPending || onClose())
  const isReady = typed === undefined || asShown(word) === asShown(typed)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) task.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm" component="div">
          {text}
        </Text>
        {typed === undefined ? null : (
          <TextInput
            label={
              <>
                Type{' '}
                <b>
                  <bdi>{typed}</bdi>
                </b>{' '}
                to continue
              </>
            }
            value={word}
            onChange={(event) => setWord(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        <Refusal error={task.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose} data-autofocus={typed === undefined || undefined}>
            Go back
          </Button>
          <Button type="submit" color="red.9" disabled={!isReady} loading={task.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

/** Treats "not found" as success: the item was already deleted, for example in another tab. */
function passIfGone(error: unknown): void {
  if (!(error instanceof ApiError) || error.status !== 404) throw error
  notifications.show({ message: 'It had already been deleted.', color: 'gray' })
}

/** A text as it looks on a page: the browser draws several spaces as one, and none at the ends. */
const asShown = (text: string): string => text.replace(/\s+/g, ' ').trim()
