import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { listBulkActions, startBulkAction } from '../../../../src/contract/bulk/actions.js'
import { listDeadLetters } from '../../../../src/contract/queue/dead-letters.js'
import { listLogs } from '../../../../src/contract/queue/messages.js'
import { listDeadRuns } from '../../../../src/contract/workflow/dead-letters.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { hasUnknownOutcome } from '../../api/client.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { TextLink } from '../../components/link.js'
import { Panel } from '../../components/page.js'
import { Refusal } from '../../components/states.js'
import { When } from '../../components/when.js'
import { serverMs } from '../../lib/clock.js'
import { counted } from '../../lib/format.js'
import { type Choice, kindOf, type Settings, selectorOf, sendingHeaders, settingsOf } from './selector.js'
import { KIND_WORDS, type Kind } from './words.js'

/** The last step: the user confirms by typing the number of matches. */
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
  const isLost = start.error !== null && hasUnknownOutcome(start.error)
  const isReady = typed.replaceAll(/[\s,.]/g, '') === String(matched)
  const submit = () =>
    start.mutate({
      body: { kind, selector: selectorOf(choice), ...settingsOf(kind, settings, serverMs()) },
      headers: sendingHeaders(choice, settings),
    })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady && !isLost) submit()
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
          <Refusal error={start.error} />
          {isLost ? <MayHaveStarted kind={kind} /> : null}
          <Group justify="space-between">
            <Button variant="default" onClick={onBack}>
              {isLost ? 'Check the matches again' : 'Back'}
            </Button>
            <Button type="submit" color="red.9" disabled={!isReady || isLost} loading={start.isPending}>
              {sentence}
            </Button>
          </Group>
        </Stack>
      </Panel>
    </form>
  )
}

/** After a lost answer to the start, shows the newest action of the kind: a second start would act on another set. */
function MayHaveStarted({ kind }: { kind: Kind }) {
  const newest = useApi(listBulkActions, { query: { kind: [kind], count: 1 } }, { everyMs: LIVE_MS })
  const action = newest.data?.bulkActions[0]
  return (
    <Text size="sm" role="status">
      The action may have started nevertheless.{' '}
      {action === undefined ? (
        newest.isSuccess && 'So far, there is none of this kind.'
      ) : (
        <>
          The newest of this kind was started <When atMs={action.createdAt} /> by {action.createdBy}, with{' '}
          {counted(action.matched, 'match', 'matches')}:{' '}
          <TextLink to="/bulk-actions/$id" params={{ id: action.actionId }}>
            open it
          </TextLink>
          .
        </>
      )}
    </Text>
  )
}
