import IconAdjustments from 'icon:adjustments'
import IconPin from 'icon:pin'
import IconSearch from 'icon:search'
import { Button, NumberInput, SimpleGrid, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Static } from 'typebox'
import { changeFlowKey, getGlobalParallelism, listFlowKeys } from '../../../../src/contract/queue/flow.js'
import { pauseWord } from '../../../../src/contract/words/states.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { LimitBar } from '../../components/figure.js'
import { FilterField } from '../../components/filter-field.js'
import { FormDialog } from '../../components/form-dialog.js'
import { Page, Panel } from '../../components/page.js'
import { type RowAction, RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { duration, whole } from '../../lib/format.js'
import { given } from '../../lib/search.js'

const route = getRouteApi('/shell/flow-control')

type FlowKey = Static<typeof listFlowKeys.success.body>[number]

/** The key that the dialog pins. */
type Pinning = { readonly kind: 'new' } | { readonly kind: 'change'; readonly key: FlowKey }

/** Flow control: limits that messages with the same key share. */
export function FlowControlPage() {
  const { search } = route.useSearch()
  const navigate = useNavigate()
  const setSearch = (text: string | undefined) =>
    void navigate({ to: '/flow-control', search: given({ search: text }), replace: true })
  const [pinning, setPinning] = useState<Pinning | undefined>()
  const canWrite = useCanWrite()
  const keys = useApi(listFlowKeys, { query: { search } }, { everyMs: LIVE_MS })
  const pin = canWrite ? (
    <Button leftSection={<IconPin size={16} />} onClick={() => setPinning({ kind: 'new' })}>
      Pin a key
    </Button>
  ) : undefined
  return (
    <Page
      title="Flow control"
      about="Messages with the same key share its limits on parallelism and rate. Messages above a limit wait."
      actions={pin}
    >
      <ServerParallelism />
      <Panel
        flush
        title="Keys"
        actions={<FilterField label="Search by key" isSearch value={search} onChange={setSearch} />}
      >
        <Loaded query={keys} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Flow-control keys"
              columns={columnsFor(canWrite, (key) => setPinning({ kind: 'change', key }))}
              rows={rows}
              rowKey={({ flowControlKey }) => flowControlKey}
              empty={
                search === undefined ? (
                  <EmptyState title="No flow-control keys yet" icon={IconAdjustments} action={pin}>
                    Publish a message with a flow-control key, or pin the limits of a key in advance.
                  </EmptyState>
                ) : (
                  <EmptyState title="No keys match the search" icon={IconSearch} />
                )
              }
            />
          )}
        </Loaded>
      </Panel>
      {pinning === undefined ? null : <PinForm pinning={pinning} onClose={() => setPinning(undefined)} />}
    </Page>
  )
}

function ServerParallelism() {
  const parallelism = useApi(getGlobalParallelism, {}, { everyMs: LIVE_MS })
  return (
    <Panel>
      <Loaded query={parallelism}>
        {({ parallelismCount, parallelismMax }) => (
          <LimitBar label="Deliveries in flight" used={parallelismCount} allowed={parallelismMax} show={whole} />
        )}
      </Loaded>
    </Panel>
  )
}

const limitText = (count: number, most: number): string =>
  most === 0 ? 'no limit' : `${whole(count)} of ${whole(most)}`

/** Marks a pinned limit, which messages cannot change. */
const pinText = (isPinned: boolean): string => (isPinned ? ', pinned' : '')

function columnsFor(canWrite: boolean, onPin: (key: FlowKey) => void): Column<FlowKey>[] {
  return [
    { key: 'key', title: 'Key', render: ({ flowControlKey }) => flowControlKey },
    {
      key: 'state',
      title: 'State',
      width: 'clamp(0px, 24vw, 120px)',
      render: ({ isPaused }) => <StateOf word={pauseWord(isPaused)} />,
    },
    {
      key: 'waiting',
      title: 'Waiting',
      width: 'clamp(0px, 18vw, 90px)',
      align: 'right',
      render: ({ waitListSize }) => whole(waitListSize),
    },
    {
      key: 'parallelism',
      title: 'Parallelism',
      width: '160px',
      align: 'right',
      from: 'sm',
      render: ({ parallelismCount, parallelismMax, isPinnedParallelism }) =>
        limitText(parallelismCount, parallelismMax) + pinText(isPinnedParallelism),
    },
    {
      key: 'rate',
      title: 'Rate',
      width: '200px',
      align: 'right',
      from: 'md',
      render: ({ rateCount, rateMax, ratePeriod, isPinnedRate }) =>
        (rateMax === 0 ? 'no limit' : `${limitText(rateCount, rateMax)} in ${duration(ratePeriod * 1000)}`) +
        pinText(isPinnedRate),
    },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (key) => (canWrite ? <KeyActions flowKey={key} onPin={() => onPin(key)} /> : null),
    },
  ]
}

function KeyActions({ flowKey, onPin }: { flowKey: FlowKey; onPin: () => void }) {
  const { flowControlKey: name, isPaused, isPinnedParallelism, isPinnedRate } = flowKey
  const change = useChange(changeFlowKey, { refreshes: [listFlowKeys], done: `The key ${name} was changed.` })
  const doing =
    (act: string): (() => void) =>
    () =>
      change.mutate({ params: { action: `${encodeURIComponent(name)}/${act}` } })
  const unpin: RowAction = { label: 'Unpin', onClick: doing('unpin?parallelism=true&rate=true') }
  return (
    <RowMenu
      of={name}
      actions={[
        isPaused
          ? { label: 'Resume the key', onClick: doing('resume') }
          : { label: 'Pause the key', onClick: doing('pause') },
        { label: 'Pin limits', onClick: onPin },
        ...(isPinnedParallelism || isPinnedRate ? [unpin] : []),
        { label: 'Start a new period', onClick: doing('resetRate') },
      ]}
    />
  )
}

interface PinValues {
  readonly name: string
  readonly parallelism: number | ''
  readonly rate: number | ''
  readonly period: number | ''
}

function pinQuery({ parallelism, rate, period }: PinValues): string {
  const given = Object.entries({ parallelism, rate, ...(rate === '' ? {} : { period }) }).filter(
    ([, value]) => value !== '',
  )
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
}

function PinForm({ pinning, onClose }: { pinning: Pinning; onClose: () => void }) {
  const key = pinning.kind === 'change' ? pinning.key : undefined
  const form = useForm<PinValues>({
    initialValues: {
      name: key?.flowControlKey ?? '',
      parallelism: key?.parallelismMax || '',
      rate: key?.rateMax || '',
      period: key?.rateMax ? key.ratePeriod : 1,
    },
    validateInputOnChange: true,
    validate: {
      name: (name) => (name.trim() === '' ? 'Enter a key' : null),
      parallelism: (value, { rate }) => (value === '' && rate === '' ? 'Enter at least one limit' : null),
    },
  })
  const pin = useChange(changeFlowKey, { refreshes: [listFlowKeys], errors: 'inline', onDone: onClose })
  const submit = form.onSubmit((values) =>
    pin.mutate({ params: { action: `${encodeURIComponent(values.name.trim())}/pin?${pinQuery(values)}` } }),
  )
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={key ? `Pin the limits of ${key.flowControlKey}` : 'Pin the limits of a key'}
      task={pin}
      action="Pin the limits"
      onSubmit={submit}
    >
      <Text size="sm" c="dimmed">
        Pinned limits override those of messages until they are unpinned.
      </Text>
      {key ? null : <TextInput label="Key" data-autofocus {...form.getInputProps('name')} />}
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="md">
        <NumberInput label="Parallelism" min={1} allowDecimal={false} {...form.getInputProps('parallelism')} />
        <NumberInput label="Rate (calls per period)" min={1} allowDecimal={false} {...form.getInputProps('rate')} />
        <NumberInput label="Period" suffix=" s" min={1} allowDecimal={false} {...form.getInputProps('period')} />
      </SimpleGrid>
    </FormDialog>
  )
}
