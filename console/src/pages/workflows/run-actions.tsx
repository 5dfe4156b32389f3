import IconBolt from 'icon:bolt'
import IconPlayerPlay from 'icon:player-play'
import IconPlayerStop from 'icon:player-stop'
import IconRefresh from 'icon:refresh'
import { Button, Stack, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import {
  cancelRunCallback,
  deleteDeadRun,
  listDeadRuns,
  restartDeadRun,
  resumeDeadRun,
  retryRunCallback,
} from '../../../../src/contract/workflow/dead-letters.js'
import { unpauseRun } from '../../../../src/contract/workflow/pause.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { api } from '../../api/client.js'
import { useChange } from '../../api/hooks.js'
import { useCanWrite, useSettings } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { Fact } from '../../components/copy.js'
import { CopyMenu } from '../../components/copy-menu.js'
import { Panel } from '../../components/page.js'
import { PayloadView } from '../../components/payload.js'
import { Status } from '../../components/status.js'
import { UndoButton } from '../../components/undo.js'
import { When } from '../../components/when.js'
import { payloadOfText } from '../../lib/payload.js'
import { sendableOfRun, valuesOfRun } from '../queue/send-again.js'
import { COPIED, SNIPPET_TITLES, sendSnippets } from '../queue/snippets.js'
import { askPause } from './pause.js'
import { askCancel, undoOf } from './run-menu.js'
import { TriggerForm } from './trigger.js'
import { FAILURE_WORDS, type Run } from './words.js'

const LISTS = [listRuns, listDeadRuns]
/** Longer responses are cut here. The failed step shows the whole response. */
const MAX_SAID_LENGTH = 500

/** The actions on a run in its state. */
export function RunActions({ run }: { run: Run }) {
  const canWrite = useCanWrite()
  const { queue_url } = useSettings()
  const copy = <CopyMenu titles={SNIPPET_TITLES} of={() => sendSnippets(sendableOfRun(run), queue_url)} done={COPIED} />
  if (!canWrite) return copy
  return (
    <>
      {copy}
      <TriggerAgain run={run} />
      {run.workflowState === 'RUN_STARTED' ? <PauseButton run={run} /> : null}
      {run.workflowState === 'RUN_STARTED' ? <CancelButton run={run} /> : null}
      {run.workflowState === 'RUN_CANCELED' ? <UndoButton undo={undoOf(run.workflowRunId)} /> : null}
      {run.dlqId === undefined ? null : <RetryButtons dlqId={run.dlqId} />}
    </>
  )
}

function TriggerAgain({ run }: { run: Run }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button variant="default" leftSection={<IconBolt size={16} />} onClick={() => setOpen(true)}>
        Trigger again…
      </Button>
      {isOpen ? <TriggerForm isOpen initial={valuesOfRun(run)} onClose={() => setOpen(false)} /> : null}
    </>
  )
}

/** Pauses an active run, or resumes it. */
function PauseButton({ run: { workflowRunId, paused } }: { run: Run }) {
  const resume = useChange(unpauseRun, { refreshes: [listRuns], done: 'The run was resumed.' })
  return paused === undefined ? (
    <Button variant="default" onClick={() => askPause(workflowRunId)}>
      Pause
    </Button>
  ) : (
    <Button variant="default" loading={resume.isPending} onClick={() => resume.mutate({ params: { workflowRunId } })}>
      Resume
    </Button>
  )
}

function CancelButton({ run: { workflowRunId } }: { run: Run }) {
  return (
    <Button color="red.9" leftSection={<IconPlayerStop size={16} />} onClick={() => askCancel(workflowRunId)}>
      Cancel the run
    </Button>
  )
}

/** Resumes or restarts a failed run, and opens the new run. */
export function RetryButtons({ dlqId, onDeleted }: { dlqId: string; onDeleted?: () => void }) {
  const navigate = useNavigate()
  const done = {
    refreshes: LISTS,
    onDone: ({ workflowRunId }: { workflowRunId: string }) =>
      void navigate({ to: '/runs/$id', params: { id: workflowRunId } }),
  }
  const resume = useChange(resumeDeadRun, { ...done, done: 'A new run continues at the failed step.' })
  const restart = useChange(restartDeadRun, { ...done, done: 'A new run starts from the beginning.' })
  const args = { params: { dlqId } }
  const isBusy = resume.isPending || restart.isPending
  return (
    <>
      <Button
        leftSection={<IconPlayerPlay size={16} />}
        loading={resume.isPending}
        disabled={isBusy}
        onClick={() => resume.mutate(args)}
      >
        Resume at the failed step
      </Button>
      <Button
        variant="default"
        leftSection={<IconRefresh size={16} />}
        loading={restart.isPending}
        disabled={isBusy}
        onClick={() => restart.mutate(args)}
      >
        Restart from the beginning
      </Button>
      <Button variant="default" disabled={isBusy} onClick={() => askDelete(dlqId, onDeleted)}>
        Delete the dead letter
      </Button>
    </>
  )
}

const askDelete = (dlqId: string, onDeleted: (() => void) | undefined) =>
  confirm({
    title: 'Delete this dead letter',
    text: 'The run cannot be resumed or restarted any more. It stays in the log as failed.',
    action: 'Delete the dead letter',
    onConfirm: async () => {
      await api(deleteDeadRun, { params: { dlqId } })
      onDeleted?.()
    },
    refreshes: LISTS,
  })

/** The failed step and the state of the failure function. */
export function FailurePanel({ run }: { run: Run }) {
  const { failureFunction } = run
  if (run.workflowState !== 'RUN_FAILED') return null
  const failed = run.steps.flatMap(({ steps }) => steps).findLast(({ state }) => state === 'STEP_FAILED')
  const last = failed?.errors?.at(-1)
  return (
    <Panel title="Why it failed">
      <Stack gap="sm">
        <Text size="sm">
          {failed?.stepName === undefined ? 'A delivery' : `The step “${failed.stepName}”`} failed
          {last === undefined || last.status === 0 ? '' : ` with status ${last.status}`}:{' '}
          <b>{last?.error.slice(0, MAX_SAID_LENGTH)}</b>
        </Text>
        {failureFunction?.state === undefined ? (
          <Text size="sm" c="dimmed">
            The endpoint has no failure function.
          </Text>
        ) : (
          <FailureFunction of={failureFunction} dlqId={run.dlqId} />
        )}
      </Stack>
    </Panel>
  )
}

function FailureFunction({
  of: { state, url, responseStatus, responseBody, errors, nextDeliveryTime },
  dlqId,
}: {
  of: NonNullable<Run['failureFunction']>
  dlqId: string | undefined
}) {
  const canWrite = useCanWrite()
  const retry = useChange(retryRunCallback, { refreshes: LISTS, done: 'The failure function will be called again.' })
  const giveUp = useChange(cancelRunCallback, {
    refreshes: LISTS,
    done: 'The failure function will not be called again.',
  })
  if (state === undefined) return null
  return (
    <Stack gap="xs">
      <div>
        <Fact name="Failure function">
          <Status tone={FAILURE_WORDS[state].tone}>{FAILURE_WORDS[state].title}</Status>
        </Fact>
        {url === undefined ? null : <Fact name="URL">{url}</Fact>}
        {responseStatus === undefined ? null : <Fact name="Response status">{responseStatus}</Fact>}
        {state === 'CALLBACK_INPROGRESS' && nextDeliveryTime !== undefined && errors !== undefined ? (
          <Fact name={`Called again, after ${errors.at(-1)?.error}`}>
            <When atMs={nextDeliveryTime} />
          </Fact>
        ) : null}
      </div>
      {responseBody === undefined || responseBody === '' ? null : (
        <PayloadView payload={payloadOfText(responseBody)} label="Response of the failure function" />
      )}
      {!canWrite || dlqId === undefined ? null : state === 'CALLBACK_FAIL' ? (
        <Button
          size="xs"
          variant="default"
          loading={retry.isPending}
          onClick={() => retry.mutate({ params: { dlqId } })}
          style={{ alignSelf: 'flex-start' }}
        >
          Call the failure function again
        </Button>
      ) : state === 'CALLBACK_INPROGRESS' ? (
        <Button
          size="xs"
          variant="default"
          loading={giveUp.isPending}
          onClick={() => giveUp.mutate({ params: { dlqId } })}
          style={{ alignSelf: 'flex-start' }}
        >
          Stop the calls
        </Button>
      ) : null}
    </Stack>
  )
}
