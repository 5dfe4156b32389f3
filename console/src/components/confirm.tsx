import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { modals } from '@mantine/modals'
import { type ReactNode, useState } from 'react'

/** What is asked before something is done that cannot be undone. */
export interface Question {
  readonly title: string
  /** What will happen, and to what. */
  readonly text: ReactNode
  /** The verb on the button: `Delete the database`. */
  readonly action: string
  /** A word to type first, such as the name of what is destroyed. */
  readonly typed?: string
  /** Does it. The dialog stays open while it works, and shows why when it fails. */
  readonly onConfirm: () => Promise<unknown>
}

/** Asks before something destructive is done. */
export function confirm(question: Question): void {
  const id = modals.open({
    title: question.title,
    children: <ConfirmBody question={question} onClose={() => modals.close(id)} />,
  })
}

function ConfirmBody({ question, onClose }: { question: Question; onClose: () => void }) {
  const { text, action, typed, onConfirm } = question
  const [word, setWord] = useState('')
  const [state, setState] = useState<{ kind: 'asking' } | { kind: 'working' } | { kind: 'failed'; error: Error }>({
    kind: 'asking',
  })
  const isReady = typed === undefined || word.trim() === typed
  const run = async () => {
    setState({ kind: 'working' })
    try {
      await onConfirm()
      onClose()
    } catch (error) {
      setState({ kind: 'failed', error: error instanceof Error ? error : new Error(String(error)) })
    }
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) void run()
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
                Type <b>{typed}</b> to go on
              </>
            }
            value={word}
            onChange={(event) => setWord(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        {state.kind === 'failed' ? (
          <Alert color="red" role="alert">
            {state.error.message}
          </Alert>
        ) : null}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Keep it as it is
          </Button>
          <Button type="submit" color="red.9" disabled={!isReady} loading={state.kind === 'working'}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
