import { Autocomplete, Button, Collapse, NumberInput, Select, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { type UseFormReturnType, useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { listLogs, publishBatch } from '../../../../src/contract/queue.js'
import { listUrlGroups } from '../../../../src/contract/queue-groups.js'
import { listQueues } from '../../../../src/contract/queue-queues.js'
import { ApiError, api } from '../../api/client.js'
import { useApi, useTask } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { type BatchItem, EMPTY, itemOf, PUBLISH_RULES, type PublishValues } from './publish-form.js'

type PublishFormState = UseFormReturnType<PublishValues>

const METHODS = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE']
const CONTENT_TYPES = ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'application/xml']

/** Publishes one item; answers the message, the first one when it went to a URL group. */
async function publish(item: BatchItem): Promise<string> {
  // As a batch of one: a destination in an address would be tidied up by the browser on its way.
  const [answer] = await api(publishBatch, { body: [item] })
  const first = Array.isArray(answer) ? answer[0] : answer
  if (first !== undefined && 'error' in first) throw new ApiError(400, first.error)
  if (first === undefined) throw new ApiError(400, 'The URL group has no endpoints, so nothing was published.')
  return first.messageId
}

/** The dialog that publishes a message, with every setting that a message can have. */
export function PublishForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const form = useForm<PublishValues>({ initialValues: EMPTY, validateInputOnChange: true, validate: PUBLISH_RULES })
  const [showsAll, { toggle }] = useDisclosure()
  const groups = useApi(listUrlGroups, {}, { enabled: isOpen })
  const task = useTask(publish, {
    refreshes: [listLogs],
    errors: 'inline',
    done: 'The message is stored and on its way.',
    onDone: (id) => {
      form.reset()
      void navigate({ to: '/messages/$id', params: { id } })
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
          description="A URL, or the name of a URL group"
          placeholder="https://example.com/api/orders"
          data={(groups.data ?? []).map(({ name }) => name)}
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
      <Textarea
        label="Body"
        autosize
        minRows={4}
        maxRows={14}
        placeholder='{"order": 4711}'
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        {...form.getInputProps('body')}
      />
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

function Settings({ form }: { form: PublishFormState }) {
  const queues = useApi(listQueues, {})
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
      <Select label="Content type" data={CONTENT_TYPES} allowDeselect={false} {...form.getInputProps('contentType')} />
      <Autocomplete
        label="Queue"
        placeholder="None: it goes out at once"
        data={(queues.data ?? []).map(({ name }) => name)}
        {...form.getInputProps('queue')}
      />
      <TextInput label="Delay" placeholder="10s, 5m, 1h30m" {...form.getInputProps('delay')} />
      <NumberInput
        label="Retries"
        placeholder="3"
        min={0}
        allowDecimal={false}
        allowNegative={false}
        {...form.getInputProps('retries')}
      />
      <TextInput label="Time limit of an attempt" placeholder="30s" {...form.getInputProps('timeout')} />
      <TextInput label="Label" placeholder="To find it again" {...form.getInputProps('label')} />
      <TextInput label="Callback" placeholder="URL that gets the answer" {...form.getInputProps('callback')} />
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
      <TextInput
        label="Deduplication id"
        placeholder="Published once in ten minutes"
        {...form.getInputProps('dedupId')}
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
