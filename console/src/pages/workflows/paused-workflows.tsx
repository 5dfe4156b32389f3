import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { listPausedWorkflows, pauseWorkflow, resumeWorkflow } from '../../../../src/contract/bulk/paused.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { confirm } from '../../components/confirm.js'
import { dateTime, withoutScheme } from '../../lib/format.js'

const refreshes = [listRuns, listPausedWorkflows]

/** Asks before all runs of a workflow are paused, those of today and those that begin. */
export const askPauseWorkflow = (workflowUrl: string) =>
  confirm({
    title: 'Pause this workflow',
    text: `The active runs of ${withoutScheme(workflowUrl)} are paused, and every run that begins waits until the workflow is resumed.`,
    action: 'Pause the workflow',
    onConfirm: () => api(pauseWorkflow, { body: { workflowUrl } }),
    refreshes,
  })

/** The paused workflows; nothing if there are none. */
export function PausedWorkflows({ canWrite }: { canWrite: boolean }) {
  const { data } = useApi(listPausedWorkflows, {}, { everyMs: LIVE_MS })
  const resume = useChange(resumeWorkflow, { refreshes, done: 'The workflow goes on.' })
  if (data === undefined || data.workflows.length === 0) return null
  return (
    <Alert color="yellow" title="Paused workflows">
      <Stack gap="xs">
        {data.workflows.map(({ workflowUrl, paused: { at, by, reason } }) => (
          <Group key={workflowUrl} justify="space-between">
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {withoutScheme(workflowUrl)}, since {dateTime(at)} by {by}
              {reason === undefined ? '' : `: “${reason}”`}. Its runs wait.
            </Text>
            {canWrite ? (
              <Button
                size="xs"
                variant="default"
                loading={resume.isPending}
                onClick={() => resume.mutate({ body: { workflowUrl } })}
              >
                Resume {withoutScheme(workflowUrl)}
              </Button>
            ) : null}
          </Group>
        ))}
      </Stack>
    </Alert>
  )
}
