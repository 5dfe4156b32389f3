import { useNavigate } from '@tanstack/react-router'
import { undoCancelOfRun } from '../../../../src/contract/bulk/undo.js'
import { listDeadRuns, resumeDeadRun } from '../../../../src/contract/workflow/dead-letters.js'
import { unpauseRun } from '../../../../src/contract/workflow/pause.js'
import { endRun, listRuns } from '../../../../src/contract/workflow/runs.js'
import { ApiError, api } from '../../api/client.js'
import { useChange, useTask } from '../../api/hooks.js'
import { useCanWrite, useSettings } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type RowAction, RowMenu } from '../../components/row-menu.js'
import { askUndo, type Undo } from '../../components/undo.js'
import { copyText } from '../../lib/clipboard.js'
import { sendableOfRun } from '../queue/send-again.js'
import { COPIED, SNIPPET_TITLES, sendSnippets } from '../queue/snippets.js'
import { askPause, askPauseWorkflow } from './pause.js'
import type { Run } from './words.js'

/** Asks before a run is cancelled. */
export const askCancel = (workflowRunId: string) =>
  confirm({
    title: 'Cancel this run',
    text: 'Nothing more of it is delivered, a request in flight is aborted, and its failure function is not called. You can undo this as long as the run is kept.',
    action: 'Cancel the run',
    onConfirm: () => api(endRun, { params: { workflowRunId } }),
    refreshes: [listRuns],
  })

/** The question that brings a cancelled run back. */
export const undoOf = (workflowRunId: string): Undo => ({
  title: 'Undo the cancel of this run',
  text: 'It continues where it stood, with its id and its steps. A request that was in flight is sent again.',
  action: 'Bring the run back',
  refreshes: [listRuns],
  onAnswer: (body) => api(undoCancelOfRun, { params: { workflowRunId }, body }),
})

/** The run with its payload, which lists leave out. */
async function wholeRun(workflowRunId: string): Promise<Run> {
  const { runs } = await api(listRuns, {
    query: { workflowRunId: [workflowRunId], count: 1, groupBy: 'workflowRunId' },
  })
  const [run] = runs
  if (run === undefined) throw new ApiError(404, 'The run was deleted: logs of ended runs are kept for a limited time.')
  return run
}

/** The menu of a run in the list. */
export function RunMenu({
  run: { workflowRunId, workflowUrl, workflowState, dlqId, paused },
  onAgain,
}: {
  run: Run
  /** Opens the form with the run. */
  onAgain: (run: Run) => void
}) {
  const canWrite = useCanWrite()
  const navigate = useNavigate()
  const { queue_url } = useSettings()
  const again = useTask(() => wholeRun(workflowRunId), { onDone: onAgain })
  const copy = useTask(
    async (title: string) => {
      const snippets = sendSnippets(sendableOfRun(await wholeRun(workflowRunId)), queue_url)
      await copyText(snippets.find((one) => one.title === title)?.code ?? '')
    },
    { done: COPIED },
  )
  const resume = useChange(resumeDeadRun, {
    refreshes: [listRuns, listDeadRuns],
    done: 'A new run continues at the failed step.',
    onDone: (made) => void navigate({ to: '/runs/$id', params: { id: made.workflowRunId } }),
  })
  const unpause = useChange(unpauseRun, { refreshes: [listRuns], done: 'The run was resumed.' })
  const pausing: RowAction =
    paused === undefined
      ? { label: 'Pause the run…', onClick: () => askPause(workflowRunId) }
      : { label: 'Resume the run', onClick: () => unpause.mutate({ params: { workflowRunId } }) }
  const writing: RowAction[] = [
    ...(dlqId === undefined
      ? []
      : [{ label: 'Resume at the failed step', onClick: () => resume.mutate({ params: { dlqId } }) }]),
    { label: 'Trigger again…', onClick: () => again.mutate(undefined) },
    ...(workflowState === 'RUN_STARTED' ? [pausing] : []),
    { label: 'Pause the workflow…', onClick: () => askPauseWorkflow(workflowUrl) },
    ...(workflowState === 'RUN_STARTED'
      ? [{ label: 'Cancel the run', onClick: () => askCancel(workflowRunId), isDangerous: true }]
      : []),
    ...(workflowState === 'RUN_CANCELED'
      ? [{ label: 'Undo the cancel…', onClick: () => askUndo(undoOf(workflowRunId)) }]
      : []),
  ]
  const copying = SNIPPET_TITLES.map((title) => ({ label: `Copy as ${title}`, onClick: () => copy.mutate(title) }))
  return <RowMenu of={workflowRunId} actions={[...(canWrite ? writing : []), ...copying]} />
}
