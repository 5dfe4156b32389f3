import { Autocomplete, Select, SimpleGrid, TextInput } from '@mantine/core'
import { type UseFormReturnType, useForm } from '@mantine/form'
import { useNavigate } from '@tanstack/react-router'
import { listUrlGroups } from '../../../../src/contract/queue/groups.js'
import { listLogs, publishBatch } from '../../../../src/contract/queue/messages.js'
import { listQueues } from '../../../../src/contract/queue/queues.js'
import { ApiError, api } from '../../api/client.js'
import { useApi, useTask } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { useRequestNames } from '../../lib/repeated.js'
import { AllSettings, BodyField, DeliveryFields, LabelField } from './delivery-fields.js'
import { type BatchItem, DEDUPLICATION_ID, EMPTY, itemOf, PUBLISH_RULES, type PublishValues } from './publish-form.js'

type PublishFormState = UseFormReturnType<PublishValues>

const METHODS = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE']
const CONTENT_TYPES = ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'application/xml']

/** The published message; for a URL group, the first one. */
interface Published {
  readonly id: string
  readonly said: string
}

/** Publishes one item, with `ownId` as deduplication id unless the form has one, so that a repeated request is harmless. */
async function publish(item: BatchItem, ownId: string): Promise<Published> {
  const hasId = item.headers?.[DEDUPLICATION_ID] !== undefined
  const named = hasId ? item : { ...item, headers: { ...item.headers, [DEDUPLICATION_ID]: ownId } }
  // A batch of one item, because the browser would normalize a destination in the URL.
  const [answer] = await api(publishBatch, { body: [named] })
  const first = Array.isArray(answer) ? answer[0] : answer
  if (first !== undefined && 'error' in first) throw new ApiError(400, first.error)
  if (first === undefined)
    throw new ApiError(400, 'The URL group has no endpoints, so nothing was published. Add an endpoint first.')
  const { messageId: id, because } = first
  return {
    id,
    said:
      because ?? (hasId && first.deduplicated ? 'It is a duplicate of this message.' : 'The message was published.'),
  }
}

/** The dialog that publishes a message, with all settings of a message. */
export function PublishForm({
  isOpen,
  onClose,
  initial = EMPTY,
}: {
  isOpen: boolean
  onClose: () => void
  /** The values of a message to publish again. */
  initial?: PublishValues
}) {
  const navigate = useNavigate()
  const form = useForm<PublishValues>({ initialValues: initial, validateInputOnChange: true, validate: PUBLISH_RULES })
  const groups = useApi(listUrlGroups, {}, { enabled: isOpen })
  const names = useRequestNames('console-')
  const task = useTask((item: BatchItem) => publish(item, names.of(item)), {
    refreshes: [listLogs],
    errors: 'inline',
    done: ({ said }) => said,
    onDone: ({ id }) => {
      names.answered()
      form.reset()
      if (initial !== EMPTY) onClose()
      // Replaces the address of the list, in which the dialog is open.
      void navigate({ to: '/messages/$id', params: { id }, replace: initial === EMPTY })
    },
  })
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Publish a message"
      size="lg"
      task={task}
      action="Publish the message"
      onSubmit={form.onSubmit((values) => task.mutate(itemOf(values)))}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" style={{ gridTemplateColumns: 'minmax(0, 1fr) 110px' }}>
        <Autocomplete
          label="Destination"
          description="A URL or the name of a URL group"
          placeholder="https://example.com/api/orders"
          data={(groups.data ?? []).map(({ name }) => name)}
          openOnFocus={false}
          data-autofocus
          {...form.getInputProps('destination')}
        />
        <Select
          label="Method"
          description="Of the request"
          data={METHODS}
          allowDeselect={false}
          {...form.getInputProps('method')}
        />
      </SimpleGrid>
      <BodyField form={form} label="Body" />
      <AllSettings errors={form.errors} others={['destination', 'method', 'body']}>
        <Settings form={form} />
      </AllSettings>
    </FormDialog>
  )
}

/** The content types to choose from, and that of the message: one that is published again may have any. */
const typesWith = (type: string) => [...new Set([...CONTENT_TYPES, ...(type === '' ? [] : [type])])]

function Settings({ form }: { form: PublishFormState }) {
  const queues = useApi(listQueues, {})
  return (
    <>
      <Select
        label="Content type"
        data={typesWith(form.values.contentType)}
        allowDeselect={false}
        {...form.getInputProps('contentType')}
      />
      <LabelField form={form} />
      <Autocomplete
        label="Queue"
        placeholder="None"
        data={(queues.data ?? []).map(({ name }) => name)}
        {...form.getInputProps('queue')}
      />
      <TextInput
        label="Deduplication ID"
        placeholder="Drops duplicates for 10 minutes"
        {...form.getInputProps('dedupId')}
      />
      <TextInput label="Timeout of an attempt" placeholder="30s" {...form.getInputProps('timeout')} />
      <TextInput label="Callback" placeholder="URL that gets the response" {...form.getInputProps('callback')} />
      <DeliveryFields form={form} retriesLabel="Retries" />
    </>
  )
}
