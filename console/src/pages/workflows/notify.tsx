import { SegmentedControl, Stack, Text, Textarea } from '@mantine/core'
import { useForm } from '@mantine/form'
import type { Static } from 'typebox'
import { listWaiters, notifyEvent } from '../../../../src/contract/workflow/events.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { api } from '../../api/client.js'
import { useTask } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { Term } from '../../components/term.js'
import { counted } from '../../lib/format.js'

type Answer = Static<(typeof notifyEvent)['success']['body']>

interface Notice {
  readonly eventId: string
  /** Sends to this run only, also if the run starts to wait later. */
  readonly runId: string | undefined
  readonly body: string
}

const send = ({ eventId, runId, body }: Notice): Promise<Answer> => {
  const event = [runId, eventId].filter((part) => part !== undefined).map(encodeURIComponent)
  return api(notifyEvent, { params: { event: event.join('/') }, body })
}

function doneText(answer: Answer): string {
  if (answer.length === 0) return 'The event was sent, but no run waits for it right now.'
  return `${counted(answer.length, 'run continues', 'runs continue')}.`
}

/** The dialog that sends an event to one run or to all runs that wait for it. */
export function NotifyForm({
  isOpen,
  onClose,
  eventId,
  runId,
}: {
  isOpen: boolean
  onClose: () => void
  eventId: string
  runId?: string
}) {
  const form = useForm({ initialValues: { to: runId === undefined ? 'all' : 'one', body: '' } })
  const task = useTask(send, {
    refreshes: [listRuns, listWaiters],
    errors: 'inline',
    done: doneText,
    onDone: () => {
      form.reset()
      onClose()
    },
  })
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Send an event"
      task={task}
      action="Send the event"
      onSubmit={form.onSubmit(({ to, body }) =>
        task.mutate({ eventId, body, runId: to === 'one' ? runId : undefined }),
      )}
    >
      <Stack gap="md">
        <Text size="sm">
          Runs that wait for <Term>{eventId}</Term> continue and get the data as <Term>eventData</Term>.
        </Text>
        {runId === undefined ? null : (
          <SegmentedControl
            aria-label="Receivers"
            data={[
              { value: 'one', label: 'Only this run' },
              { value: 'all', label: 'All waiting runs' },
            ]}
            {...form.getInputProps('to')}
          />
        )}
        <Textarea
          label="Event data"
          autosize
          minRows={3}
          maxRows={12}
          placeholder='{"paid": true}'
          data-autofocus
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          {...form.getInputProps('body')}
        />
      </Stack>
    </FormDialog>
  )
}
