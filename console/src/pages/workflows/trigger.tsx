import { TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useNavigate } from '@tanstack/react-router'
import { listRuns, triggerRuns } from '../../../../src/contract/workflow/runs.js'
import { ApiError, api } from '../../api/client.js'
import { useTask } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { useRequestNames } from '../../lib/repeated.js'
import { AllSettings, BodyField, DeliveryFields, LabelField } from '../queue/delivery-fields.js'
import { NO_TRIGGER, RUN_ID, TRIGGER_RULES, type TriggerItem, type TriggerValues, triggerOf } from './trigger-form.js'

/** The triggered run, or the active run that kept it from starting. */
interface Triggered {
  readonly id: string
  readonly said: string
}

/** Triggers one run, with `ownId` as its id unless the form has one, so that a repeated request triggers no second run. */
async function trigger(item: TriggerItem, ownId: string): Promise<Triggered> {
  const hasId = item.headers?.[RUN_ID] !== undefined
  const named = hasId ? item : { ...item, headers: { ...item.headers, [RUN_ID]: ownId } }
  // A batch of one item, because the browser would normalize a URL within the URL.
  const [run] = await api(triggerRuns, { body: [named] })
  if (run === undefined) throw new ApiError(500, 'The server responded without a run.')
  if (hasId && run.deduplicated && run.because === undefined)
    throw new ApiError(409, `A run with the ID ${run.workflowRunId} exists already. Choose another ID.`)
  return { id: run.workflowRunId, said: run.because ?? 'The run was triggered.' }
}

/** The dialog that triggers a run, with all settings of a run. */
export function TriggerForm({
  isOpen,
  onClose,
  initial = NO_TRIGGER,
}: {
  isOpen: boolean
  onClose: () => void
  /** The values of a run to trigger again. Its settings are shown at once. */
  initial?: TriggerValues
}) {
  const navigate = useNavigate()
  const form = useForm<TriggerValues>({
    initialValues: initial,
    validateInputOnChange: true,
    validate: TRIGGER_RULES,
  })
  const names = useRequestNames('wfr_')
  const task = useTask((item: TriggerItem) => trigger(item, names.of(item)), {
    refreshes: [listRuns],
    errors: 'inline',
    done: ({ said }) => said,
    onDone: ({ id }) => {
      names.answered()
      form.reset()
      if (initial !== NO_TRIGGER) onClose()
      // Replaces the address of the list, in which the dialog is open.
      void navigate({ to: '/runs/$id', params: { id }, replace: initial === NO_TRIGGER })
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
        label="Workflow URL"
        description="Where @upstash/workflow serves it"
        placeholder="https://example.com/api/order"
        data-autofocus
        {...form.getInputProps('url')}
      />
      <BodyField form={form} label="Payload" description="Available as context.requestPayload" />
      <LabelField form={form} />
      <AllSettings errors={form.errors} others={['url', 'body', 'label']}>
        <TextInput label="Run ID" placeholder="Generated" {...form.getInputProps('runId')} />
        <DeliveryFields form={form} retriesLabel="Retries of each delivery" />
      </AllSettings>
    </FormDialog>
  )
}
