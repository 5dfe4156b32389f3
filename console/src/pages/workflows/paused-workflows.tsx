import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { listPausedWorkflows, resumeWorkflow } from '../../../../src/contract/bulk/paused.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { dateTime, withoutScheme } from '../../lib/format.js'

const refreshes = [listRuns, listPausedWorkflows]

/** The paused workflows; nothing if there are none. */
export function PausedWorkflows({ canWrite }: { canWrite: boolean }) {
  const { data } = useApi(listPausedWorkflows, {}, { everyMs: LIVE_MS })
  const resume = useChange(resumeWorkflow, { refreshes, done: 'The workflow was resumed.' })
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
