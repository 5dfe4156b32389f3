import IconKey from 'icon:key'
import IconPlus from 'icon:plus'
import { Badge, Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { MAX_LABEL_LENGTH } from '../../../../src/contract/accounts/accounts.js'
import {
  createQueueToken,
  deleteQueueToken,
  listQueueTokens,
  type NewQueueToken,
  type QueueToken,
  rotateNamedQueueToken,
} from '../../../../src/contract/accounts/credentials.js'
import { QUEUE_TOKEN_SCOPES } from '../../../../src/contract/endpoint.js'
import { api } from '../../api/client.js'
import { useApi, useChange } from '../../api/hooks.js'
import { useManages } from '../../api/session.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { FormDialog } from '../../components/form-dialog.js'
import { Page, Panel } from '../../components/page.js'
import { ShownOnce } from '../../components/shown-once.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { EXPIRIES, expiresInOf, SecretActions, validityColumns } from './secrets.js'

type Scope = (typeof QUEUE_TOKEN_SCOPES)[number]

const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  all: 'everything',
  publish: 'publish only',
  read: 'read only',
  queue: 'one queue',
  flow_control: 'one flow-control key',
}

/** Queue tokens: list, make, rotate, delete. */
export function QueueTokensPage() {
  const [isOpen, { open, close }] = useDisclosure()
  const [made, setMade] = useState<NewQueueToken | undefined>()
  const manages = useManages()
  const tokens = useApi(listQueueTokens, {})
  const create = manages ? (
    <Button leftSection={<IconPlus size={16} />} onClick={open}>
      Create a token
    </Button>
  ) : undefined
  return (
    <Page
      title="Queue tokens"
      about="Publishers and readers of the queue and of workflows sign in with a token. Its secret is shown once, when it is created."
      actions={create}
    >
      <Panel flush title="Tokens">
        <Loaded query={tokens} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Queue tokens"
              columns={columnsFor(manages, setMade)}
              rows={rows}
              rowKey={(token) => token.token_id}
              empty={
                <EmptyState title="No queue tokens yet" icon={IconKey} action={create}>
                  Without a token nobody can publish or read messages over the API.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Panel>
      <CreateToken isOpen={isOpen} onClose={close} onMade={setMade} />
      <ShownOnce
        title={`The secret of the token ${made?.name ?? ''}`}
        secrets={[{ label: 'The new queue token', value: made?.token ?? '' }]}
        isOpen={made !== undefined}
        onClose={() => setMade(undefined)}
      />
    </Page>
  )
}

function columnsFor(manages: boolean, onRotated: (token: NewQueueToken) => void): Column<QueueToken>[] {
  return [
    { key: 'name', title: 'Name', render: (token) => <Name token={token} /> },
    {
      key: 'scope',
      title: 'May',
      width: '165px',
      from: 'sm',
      render: ({ scope, queue, flow_control_key }) => (
        <Group gap={6}>
          <Badge color={scope === 'all' ? 'harbour' : 'gray'}>{SCOPE_WORDS[scope]}</Badge>
          <span className="truncate">{queue ?? flow_control_key}</span>
        </Group>
      ),
    },
    ...validityColumns<QueueToken>(),
    {
      key: 'created',
      title: 'Created',
      width: '130px',
      from: 'sm',
      render: ({ creation_time }) => <When atMs={creation_time * 1000} />,
    },
    {
      key: 'actions',
      title: '',
      width: '150px',
      isMenuOnPhones: true,
      align: 'right',
      render: (token) => (manages ? <Actions token={token} onRotated={onRotated} /> : null),
    },
  ]
}

const rightsOf = ({ scope, queue, flow_control_key }: QueueToken): string =>
  [SCOPE_WORDS[scope], queue ?? flow_control_key].filter((word) => word !== undefined).join(' ')

/** The name; on a phone with the rights, which have no column there. */
function Name({ token }: { token: QueueToken }) {
  return (
    <>
      {token.name}
      <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
        {rightsOf(token)}
      </Text>
    </>
  )
}

function Actions({
  token: { token_id: id, name },
  onRotated,
}: {
  token: QueueToken
  onRotated: (token: NewQueueToken) => void
}) {
  return (
    <SecretActions
      kind="token"
      name={name}
      rotation={{
        text: 'A new secret is created and shown once. The old one is accepted for one more day.',
        onConfirm: async () => onRotated(await api(rotateNamedQueueToken, { params: { id } })),
      }}
      deletion={{
        text: 'Programs that use it are refused from then on. Its messages stay.',
        onConfirm: () => api(deleteQueueToken, { params: { id } }),
      }}
      refreshes={[listQueueTokens]}
    />
  )
}

interface CreateTokenProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onMade: (token: NewQueueToken) => void
}

function CreateToken({ isOpen, onClose, onMade }: CreateTokenProps) {
  const form = useForm<{ name: string; scope: Scope; of: string; expires: string }>({
    initialValues: { name: '', scope: 'publish', of: '', expires: '' },
    validate: {
      name: (name) =>
        name.trim() === '' || name.length > MAX_LABEL_LENGTH ? `1 to ${MAX_LABEL_LENGTH} characters` : null,
      of: (of, { scope }) =>
        isNamed(scope) && of.trim() === '' ? 'Enter the name that the token is limited to' : null,
    },
  })
  const create = useChange(createQueueToken, {
    refreshes: [listQueueTokens],
    errors: 'inline',
    onDone: (token) => {
      form.reset()
      onClose()
      onMade(token)
    },
  })
  const submit = form.onSubmit(({ name, scope, of, expires }) =>
    create.mutate({ body: { name, scope, ...namedOf(scope, of), ...expiresInOf(expires) } }),
  )
  const { scope } = form.values
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a queue token"
      task={create}
      action="Create the token"
      onSubmit={submit}
    >
      <TextInput
        label="Name"
        description="What will use it, such as: shop"
        data-autofocus
        {...form.getInputProps('name')}
      />
      <Select
        label="May"
        allowDeselect={false}
        data={QUEUE_TOKEN_SCOPES.map((value) => ({ value, label: SCOPE_WORDS[value] }))}
        {...form.getInputProps('scope')}
      />
      {isNamed(scope) ? (
        <TextInput label={scope === 'queue' ? 'Queue' : 'Flow-control key'} {...form.getInputProps('of')} />
      ) : null}
      <Select label="Expires" allowDeselect={false} data={EXPIRIES} {...form.getInputProps('expires')} />
    </FormDialog>
  )
}

const isNamed = (scope: Scope): boolean => scope === 'queue' || scope === 'flow_control'

function namedOf(scope: Scope, of: string): { queue?: string; flow_control_key?: string } {
  if (scope === 'queue') return { queue: of.trim() }
  return scope === 'flow_control' ? { flow_control_key: of.trim() } : {}
}
