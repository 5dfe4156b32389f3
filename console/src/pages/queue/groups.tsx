import IconPlus from 'icon:plus'
import IconSearch from 'icon:search'
import IconTopologyStar3 from 'icon:topology-star-3'
import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useState } from 'react'
import type { Static } from 'typebox'
import {
  addUrlGroupEndpoints,
  deleteUrlGroup,
  listUrlGroups,
  removeUrlGroupEndpoints,
} from '../../../../src/contract/queue/groups.js'
import { api } from '../../api/client.js'
import { CALM_MS, useApi, useChange } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { isMatch } from '../../app/palette-items.js'
import { CellDanger } from '../../components/cell-buttons.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { SearchBox } from '../../components/filter-bar.js'
import { FormDialog } from '../../components/form-dialog.js'
import { Page, Panel } from '../../components/page.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { counted, whole } from '../../lib/format.js'
import { isUrl, WRITE_URL } from './delivery-form.js'

type UrlGroup = Static<typeof listUrlGroups.success.body>[number]
type Endpoint = UrlGroup['endpoints'][number]

/** The group that gets the endpoint. */
type Adding = { readonly kind: 'new' } | { readonly kind: 'to'; readonly name: string }

/** URL groups. */
export function UrlGroupsPage() {
  const [adding, setAdding] = useState<Adding | undefined>()
  const canWrite = useCanWrite()
  const groups = useApi(listUrlGroups, {}, { everyMs: CALM_MS })
  const create = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding({ kind: 'new' })}>
      Create a URL group
    </Button>
  ) : undefined
  return (
    <Page
      title="URL groups"
      about="A message to a URL group is delivered to each of its endpoints, with separate retries."
      actions={create}
    >
      <Loaded query={groups} loading={<LoadingLines />}>
        {(all) =>
          all.length === 0 ? (
            <Panel>
              <EmptyState title="No URL groups yet" icon={IconTopologyStar3} action={create}>
                Publish to the name of a group instead of a URL, and each of its endpoints gets the message.
              </EmptyState>
            </Panel>
          ) : (
            <Groups all={all} canWrite={canWrite} onAdd={(name) => setAdding({ kind: 'to', name })} />
          )
        }
      </Loaded>
      {adding === undefined ? null : <AddEndpoint adding={adding} onClose={() => setAdding(undefined)} />}
    </Page>
  )
}

/** Groups that are rendered at a time: each is a table of its own. */
const SHOWN_AT_A_TIME = 50

interface GroupsProps {
  readonly all: readonly UrlGroup[]
  readonly canWrite: boolean
  readonly onAdd: (name: string) => void
}

function Groups({ all, canWrite, onAdd }: GroupsProps) {
  const [search, setSearch] = useState('')
  const [most, setMost] = useState(SHOWN_AT_A_TIME)
  const found = all.filter(({ name }) => isMatch(name, search))
  return (
    <Stack gap="lg">
      {all.length > SHOWN_AT_A_TIME ? <SearchBox label="Search by name" value={search} onChange={setSearch} /> : null}
      {found.slice(0, most).map((group) => (
        <GroupPanel key={group.name} group={group} canWrite={canWrite} onAdd={() => onAdd(group.name)} />
      ))}
      {found.length === 0 ? <EmptyState title="No URL groups match the search" icon={IconSearch} /> : null}
      {found.length > most ? (
        <Group justify="space-between">
          <Text size="sm" c="dimmed" role="status">
            {whole(most)} of {counted(found.length, 'URL group')}
          </Text>
          <Button variant="default" onClick={() => setMost(most + SHOWN_AT_A_TIME)}>
            Show more
          </Button>
        </Group>
      ) : null}
    </Stack>
  )
}

function GroupPanel({ group, canWrite, onAdd }: { group: UrlGroup; canWrite: boolean; onAdd: () => void }) {
  const { name, endpoints, updatedAt } = group
  const ask = () =>
    confirm({
      title: `Delete the URL group ${name}`,
      text: 'Publishing to it is refused from then on. Published messages are still delivered.',
      action: 'Delete the URL group',
      typed: name,
      onConfirm: () => api(deleteUrlGroup, { params: { name } }),
      refreshes: [listUrlGroups],
    })
  return (
    <Panel
      flush
      title={name}
      actions={
        <Group gap="xs">
          <Text size="sm" c="dimmed">
            {counted(endpoints.length, 'endpoint')}, changed <When atMs={updatedAt} />
          </Text>
          {canWrite ? (
            <>
              <Button size="xs" variant="default" onClick={onAdd} aria-label={`Add an endpoint to ${name}`}>
                Add an endpoint
              </Button>
              <Button
                size="xs"
                variant="subtle"
                c="var(--mantine-color-error)"
                color="red.9"
                onClick={ask}
                aria-label={`Delete the URL group ${name}`}
              >
                Delete
              </Button>
            </>
          ) : null}
        </Group>
      }
    >
      <DataTable
        label={`Endpoints of ${name}`}
        columns={columnsFor(group, canWrite)}
        rows={endpoints}
        rowKey={({ url }) => url}
      />
    </Panel>
  )
}

function columnsFor(group: UrlGroup, canWrite: boolean): Column<Endpoint>[] {
  return [
    { key: 'name', title: 'Name', width: '180px', from: 'xs', render: ({ name }) => name ?? '' },
    { key: 'url', title: 'URL', render: ({ url }) => url },
    {
      key: 'actions',
      title: '',
      width: '100px',
      align: 'right',
      render: (endpoint) => (canWrite ? <RemoveEndpoint group={group} endpoint={endpoint} /> : null),
    },
  ]
}

function RemoveEndpoint({ group: { name, endpoints }, endpoint: { url } }: { group: UrlGroup; endpoint: Endpoint }) {
  const ask = () =>
    confirm({
      title: 'Remove the endpoint',
      text: `${url} gets no further messages of ${name}.${endpoints.length === 1 ? ' It is the last endpoint, so the group is deleted, too.' : ''}`,
      action: 'Remove the endpoint',
      onConfirm: () => api(removeUrlGroupEndpoints, { params: { name }, body: { endpoints: [{ url }] } }),
      refreshes: [listUrlGroups],
    })
  return <CellDanger verb="Remove" of={url} onClick={ask} />
}

function AddEndpoint({ adding, onClose }: { adding: Adding; onClose: () => void }) {
  const form = useForm({
    initialValues: { group: adding.kind === 'to' ? adding.name : '', name: '', url: '' },
    validateInputOnChange: true,
    validate: {
      group: (group) => (/^[\w.-]+$/.test(group) ? null : 'Use letters, digits, - _ and . only'),
      url: (url) => (isUrl(url) ? null : WRITE_URL),
    },
  })
  const add = useChange(addUrlGroupEndpoints, {
    refreshes: [listUrlGroups],
    errors: 'inline',
    done: 'The endpoint was added.',
    onDone: onClose,
  })
  const submit = form.onSubmit(({ group, name, url }) =>
    add.mutate({
      params: { name: group },
      body: { endpoints: [{ url: url.trim(), ...(name.trim() !== '' && { name: name.trim() }) }] },
    }),
  )
  const isNew = adding.kind === 'new'
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={isNew ? 'Create a URL group' : `Add an endpoint to ${adding.name}`}
      task={add}
      action={isNew ? 'Create the URL group' : 'Add the endpoint'}
      onSubmit={submit}
    >
      {isNew ? (
        <TextInput label="Group name" placeholder="orders" data-autofocus {...form.getInputProps('group')} />
      ) : null}
      <TextInput
        label={isNew ? 'URL of the first endpoint' : 'URL'}
        placeholder="https://example.com/api/orders"
        {...form.getInputProps('url')}
      />
      <TextInput label="Endpoint name" description="Optional" {...form.getInputProps('name')} />
    </FormDialog>
  )
}
