import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { listBulkActions, startBulkAction } from '../../../../src/contract/bulk/actions.js'
import { listDeadLetters } from '../../../../src/contract/queue/dead-letters.js'
import { listLogs } from '../../../../src/contract/queue/messages.js'
import { listDeadRuns } from '../../../../src/contract/workflow/dead-letters.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { useChange } from '../../api/hooks.js'
import { Panel } from '../../components/page.js'
import { counted } from '../../lib/format.js'
import { type Choice, kindOf, type Settings, selectorOf, sendingHeaders, settingsOf } from './selector.js'
import { KIND_WORDS } from './words.js'

/** The last step: typing the number confirms it. */
export function ConfirmStep({
  choice,
  settings,
  matched,
  onBack,
}: {
  choice: Choice
  settings: Settings
  matched: number
  onBack: () => void
}) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState('')
  const kind = kindOf(choice)
  const { order, item, items, means } = KIND_WORDS[kind]
  const [before, after] = order
  const sentence = [before, counted(matched, item, items), after].filter(Boolean).join(' ')
  const start = useChange(startBulkAction, {
    refreshes: [listBulkActions, listRuns, listDeadRuns, listLogs, listDeadLetters],
    errors: 'inline',
    onDone: ({ actionId }) => void navigate({ to: '/bulk-actions/$id', params: { id: actionId } }),
  })
  const isReady = typed.replaceAll(/[\s,.]/g, '') === String(matched)
  const submit = () =>
    start.mutate({
      body: { kind, selector: selectorOf(choice), ...settingsOf(kind, settings, Date.now()) },
      headers: sendingHeaders(choice, settings),
    })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) submit()
      }}
    >
      <Panel title={`${sentence}?`}>
        <Stack gap="md" maw={560}>
          <Text size="sm">
            {means} The set is fixed when you confirm: what matches then belongs to it, what comes later does not. The
            action can be paused and aborted; finished items stay as they are.
          </Text>
          <TextInput
            label={
              <>
                Type <b>{matched}</b> to continue
              </>
            }
            inputMode="numeric"
            autoComplete="off"
            data-autofocus
            autoFocus
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
          {start.error ? (
            <Alert color="red" role="alert">
              {start.error.message}
            </Alert>
          ) : null}
          <Group justify="space-between">
            <Button variant="default" onClick={onBack}>
              Back
            </Button>
            <Button type="submit" color="red.9" disabled={!isReady} loading={start.isPending}>
              {sentence}
            </Button>
          </Group>
        </Stack>
      </Panel>
    </form>
  )
}
