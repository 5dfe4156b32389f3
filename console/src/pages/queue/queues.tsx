import IconList from 'icon:list'
import IconPlus from 'icon:plus'
import { Button, NumberInput, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useState } from 'react'
import type { Static } from 'typebox'
import {
  deleteQueue,
  getQueue,
  listQueues,
  MAX_PARALLEL,
  pauseQueue,
  putQueue,
  resumeQueue,
} from '../../../../src/contract/queue/queues.js'
import { pauseWord } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi, useChange, useTask } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { OrCommand } from '../../components/copy.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { FormDialog } from '../../components/form-dialog.js'
import { TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { counted, whole } from '../../lib/format.js'

type Queue = Static<typeof listQueues.success.body>[number]

/** The queue that the dialog creates or changes. */
type Editing = { readonly kind: 'new' } | { readonly kind: 'change'; readonly queue: Queue }

/** Queues: messages that are delivered in order. */
export function QueuesPage() {
  const [editing, setEditing] = useState<Editing | undefined>()
  const canWrite = useCanWrite()
  const queues = useApi(listQueues, {}, { everyMs: LIVE_MS })
  const create = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setEditing({ kind: 'new' })}>
      Create a queue
    </Button>
  ) : undefined
  return (
    <Page
      title="Queues"
      about="A queue delivers its messages in order, with as many deliveries at once as its parallelism."
      actions={create}
    >
      <Panel flush title="All queues">
        <Loaded query={queues} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Queues"
              columns={columnsFor(canWrite, (queue) => setEditing({ kind: 'change', queue }))}
              rows={rows}
              rowKey={({ name }) => name}
              empty={
                <EmptyState
                  title="No queues yet"
                  icon={IconList}
                  action={
                    create && (
                      <OrCommand command="homeport queue queues upsert mails --parallelism 1">{create}</OrCommand>
                    )
                  }
                >
                  Publishing to a new queue creates it with parallelism 1: one message at a time.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Panel>
      {editing === undefined ? null : (
        <QueueForm editing={editing} known={queues.data ?? []} onClose={() => setEditing(undefined)} />
      )}
    </Page>
  )
}

function columnsFor(canWrite: boolean, onEdit: (queue: Queue) => void): Column<Queue>[] {
  return [
    {
      key: 'name',
      title: 'Name',
      render: ({ name }) => (
        <TextLink to="/messages" search={{ queue: name }} title={name} className="truncate">
          {name}
        </TextLink>
      ),
    },
    {
      key: 'state',
      title: 'State',
      width: 'clamp(0px, 24vw, 110px)',
      render: ({ paused }) => <StateOf word={pauseWord(paused)} />,
    },
    { key: 'lag', title: 'Pending', width: 'clamp(0px, 18vw, 110px)', align: 'right', render: ({ lag }) => whole(lag) },
    {
      key: 'parallelism',
      title: 'Parallelism',
      width: '120px',
      align: 'right',
      from: 'xs',
      render: ({ parallelism }) => whole(parallelism),
    },
    {
      key: 'updated',
      title: 'Changed',
      width: '150px',
      from: 'sm',
      render: ({ updatedAt }) => <When atMs={updatedAt} />,
    },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (queue) => (canWrite ? <QueueActions queue={queue} onEdit={() => onEdit(queue)} /> : null),
    },
  ]
}

function QueueActions({ queue: { name, paused, lag }, onEdit }: { queue: Queue; onEdit: () => void }) {
  const args = { params: { name } }
  const pause = useChange(pauseQueue, { refreshes: [listQueues], done: `The queue ${name} was paused.` })
  const resume = useChange(resumeQueue, { refreshes: [listQueues], done: `The queue ${name} was resumed.` })
  const askDelete = () =>
    confirm({
      title: `Delete the queue ${name}`,
      text:
        lag === 0
          ? 'It has no pending messages.'
          : `Its ${counted(lag, 'pending message')} ${lag === 1 ? 'is' : 'are'} cancelled.`,
      action: 'Delete the queue',
      ...(lag > 0 && { typed: name }),
      onConfirm: () => api(deleteQueue, args),
      refreshes: [listQueues],
    })
  return (
    <RowMenu
      of={name}
      actions={[
        { label: 'Change the parallelism', onClick: onEdit },
        paused
          ? { label: 'Resume the queue', onClick: () => resume.mutate(args) }
          : { label: 'Pause the queue', onClick: () => pause.mutate(args) },
        { label: 'Delete the queue', onClick: askDelete, isDangerous: true },
      ]}
    />
  )
}

interface QueueValues {
  readonly name: string
  readonly parallelism: number
}

/** Sets the parallelism. The request includes `paused`, so it is read again: others may have changed it meanwhile. */
async function putParallelism({ name, parallelism }: QueueValues, kind: Editing['kind']): Promise<unknown> {
  const { paused } = kind === 'new' ? { paused: false } : await api(getQueue, { params: { name } })
  return api(putQueue, { body: { queueName: name, parallelism, paused } })
}

function QueueForm({
  editing,
  known,
  onClose,
}: {
  editing: Editing
  /** The existing queues. The form refuses their names for a new queue, because its request would change the old one. */
  known: readonly Queue[]
  onClose: () => void
}) {
  const queue = editing.kind === 'change' ? editing.queue : undefined
  const form = useForm({
    initialValues: { name: queue?.name ?? '', parallelism: queue?.parallelism ?? 1 },
    validateInputOnChange: true,
    validate: {
      name: (name) => {
        if (queue === undefined && known.some((one) => one.name === name))
          return 'A queue with this name exists already'
        return /^[\w.-]+$/.test(name) ? null : 'Use letters, digits, - _ and . only'
      },
      parallelism: (count) =>
        Number.isInteger(count) && count >= 1 && count <= MAX_PARALLEL
          ? null
          : `Enter a number from 1 to ${MAX_PARALLEL}`,
    },
  })
  const put = useTask((values: QueueValues) => putParallelism(values, editing.kind), {
    refreshes: [listQueues],
    errors: 'inline',
    onDone: onClose,
  })
  const submit = form.onSubmit((values) => put.mutate(values))
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={queue ? `Change the queue ${queue.name}` : 'Create a queue'}
      task={put}
      action={queue ? 'Change the queue' : 'Create the queue'}
      onSubmit={submit}
    >
      {queue ? null : <TextInput label="Name" placeholder="mails" data-autofocus {...form.getInputProps('name')} />}
      <NumberInput
        label="Parallelism"
        description="Deliveries at the same time; 1 keeps the strict order"
        min={1}
        max={MAX_PARALLEL}
        allowDecimal={false}
        {...form.getInputProps('parallelism')}
      />
    </FormDialog>
  )
}
