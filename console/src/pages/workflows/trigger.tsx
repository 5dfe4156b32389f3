import { Button, Collapse, NumberInput, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { type UseFormReturnType, useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { listRuns, triggerRuns } from '../../../../src/contract/workflow.js'
import { ApiError, api } from '../../api/client.js'
import { useTask } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { NO_TRIGGER, TRIGGER_RULES, type TriggerItem, type TriggerValues, triggerOf } from './trigger-form.js'

/** Triggers one run; answers its id. */
async function trigger(item: TriggerItem): Promise<string> {
  // As a batch of one: a URL in an address would be tidied up by the browser on its way.
  const [run] = await api(triggerRuns, { body: [item] })
  if (run === undefined) throw new ApiError(500, 'The server answered without a run.')
  if (run.deduplicated)
    throw new ApiError(409, `A run with the id ${run.workflowRunId} was there before. Choose another id.`)
  return run.workflowRunId
}

/** The dialog that triggers a run, with every setting that a run can have. */
export function TriggerForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const form = useForm<TriggerValues>({
    initialValues: NO_TRIGGER,
    validateInputOnChange: true,
    validate: TRIGGER_RULES,
  })
  const [showsAll, { toggle }] = useDisclosure()
  const task = useTask(trigger, {
    refreshes: [listRuns],
    errors: 'inline',
    done: 'The run is stored and on its way.',
    onDone: (id) => {
      form.reset()
      void navigate({ to: '/runs/$id', params: { id } })
    },
  })
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Trigger a run"
      size="lg"
      task={task}
      action="Trigger the run"
      onSubmit={form.onSubmit((values) => task.mutate(triggerOf(values)))}
    >
      <TextInput
        label="URL of the workflow"
        description="Where @upstash/workflow serves it"
        placeholder="https://example.com/api/order"
        data-autofocus
        {...form.getInputProps('url')}
      />
      <Textarea
        label="Payload"
        description="What the program finds as context.requestPayload"
        autosize
        minRows={4}
        maxRows={14}
        placeholder='{"order": 4711}'
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        {...form.getInputProps('body')}
      />
      <TextInput label="Label" placeholder="To find it again" {...form.getInputProps('label')} />
      <Button
        variant="subtle"
        size="compact-sm"
        onClick={toggle}
        aria-expanded={showsAll}
        leftSection={showsAll ? <IconChevronUp size={15} /> : <IconChevronDown size={15} />}
        style={{ alignSelf: 'flex-start' }}
      >
        {showsAll ? 'Fewer settings' : 'All settings'}
      </Button>
      <Collapse expanded={showsAll}>
        <Settings form={form} />
      </Collapse>
    </FormDialog>
  )
}

function Settings({ form }: { form: UseFormReturnType<TriggerValues> }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
      <TextInput label="Run id" placeholder="One is made" {...form.getInputProps('runId')} />
      <TextInput label="Delay" placeholder="10s, 5m, 1h30m" {...form.getInputProps('delay')} />
      <NumberInput
        label="Retries of each delivery"
        placeholder="3"
        min={0}
        allowDecimal={false}
        allowNegative={false}
        {...form.getInputProps('retries')}
      />
      <TextInput
        label="Failure callback"
        placeholder="URL that is told of the final failure"
        {...form.getInputProps('failureCallback')}
      />
      <TextInput label="Flow-control key" placeholder="Shares a limit" {...form.getInputProps('flowKey')} />
      <TextInput
        label="Limits of the key"
        placeholder="rate=10, period=1m, parallelism=5"
        {...form.getInputProps('flowValue')}
      />
      <Textarea
        label="Own headers"
        placeholder="Authorization: Bearer …"
        autosize
        minRows={1}
        maxRows={6}
        {...form.getInputProps('headers')}
      />
    </SimpleGrid>
  )
}
