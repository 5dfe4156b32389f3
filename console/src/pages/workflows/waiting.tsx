import { Button, Group, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { ButtonLink } from '../../components/link.js'
import { Panel } from '../../components/page.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { NotifyForm } from './notify.js'
import { ADVICE, type Reason, type Run, sentence } from './words.js'

/** Why a run waits, and what to do about it. */
export function Waiting({ run, reasons, canWrite }: { run: Run; reasons: readonly Reason[]; canWrite: boolean }) {
  const branches = reasons.filter(({ kind }) => kind !== 'bulk-cancel' && kind !== 'paused')
  return (
    <Panel title={branches.length > 1 ? 'Why it waits, by branch' : 'Why it waits'}>
      <Stack gap="md" component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
        {reasons.map((reason) => (
          <li key={keyOf(reason)}>
            <ReasonView reason={reason} run={run} canWrite={canWrite} />
          </li>
        ))}
      </Stack>
    </Panel>
  )
}

/** Words before the time of a reason, for kinds whose title does not say what the time means. */
const DUE_WORDS: Partial<Record<Reason['kind'], string>> = {
  event: 'times out',
  webhook: 'times out',
  sleeping: 'ends',
  delayed: 'ends',
  debounced: 'ends',
  'flow-control': 'next period',
}

const keyOf = ({ kind, actionId, messageId, eventId, workflowRunId }: Reason): string =>
  [kind, actionId, messageId, eventId, workflowRunId].join(' ')

function ReasonView({ reason, run, canWrite }: { reason: Reason; run: Run; canWrite: boolean }) {
  const { tone, title, advice } = ADVICE[reason.kind]
  const dueMs = reason.until ?? reason.at
  return (
    <Group justify="space-between" gap="sm" align="flex-start">
      <Stack gap={3} miw={0} flex="1 1 280px">
        <Group gap={8}>
          <Text fw={600} size="sm" component="div">
            <Status tone={tone}>{title}</Status>
          </Text>
          {dueMs === undefined ? null : (
            <Text size="sm" c="dimmed" component="div">
              {DUE_WORDS[reason.kind]} <When atMs={dueMs} />
            </Text>
          )}
        </Group>
        <Text size="sm">{sentence(reason.text)}</Text>
        <Text size="sm" c="dimmed">
          {advice}
        </Text>
      </Stack>
      <Help reason={reason} run={run} canWrite={canWrite} />
    </Group>
  )
}

function Help({ reason, run, canWrite }: { reason: Reason; run: Run; canWrite: boolean }) {
  const [isOpen, { open, close }] = useDisclosure()
  const { actionId, eventId, workflowRunId, flowControlKey } = reason
  if (actionId !== undefined) {
    return (
      <ButtonLink size="xs" variant="default" to="/bulk-actions/$id" params={{ id: actionId }}>
        Open the bulk action
      </ButtonLink>
    )
  }
  if (workflowRunId !== undefined) {
    return (
      <ButtonLink size="xs" variant="default" to="/runs/$id" params={{ id: workflowRunId }}>
        Open that run
      </ButtonLink>
    )
  }
  if (flowControlKey !== undefined) {
    return (
      <ButtonLink size="xs" variant="default" to="/flow-control" search={{ search: flowControlKey }}>
        Show the key
      </ButtonLink>
    )
  }
  if (eventId === undefined || !canWrite) return null
  return (
    <>
      <Button size="xs" onClick={open}>
        Send the event
      </Button>
      <NotifyForm isOpen={isOpen} onClose={close} eventId={eventId} runId={run.workflowRunId} />
    </>
  )
}
