import IconRefresh from 'icon:refresh'
import { ActionIcon, Button, Group, NumberInput, Popover, Stack, Text, Tooltip } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { confirm } from '../../../components/confirm.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Loaded } from '../../../components/states.js'
import { Term } from '../../../components/term.js'
import { When } from '../../../components/when.js'
import { counted, duration } from '../../../lib/format.js'
import { refreshData } from './reads.js'
import { readSlowLog, type SlowCommand, type SlowLogState } from './slow-entries.js'

/** The slow commands (SLOWLOG), and the duration from which on the engine logs a command. */
export function SlowLog({ plane }: { plane: DataPlane }) {
  const log = useQuery({
    queryKey: ['data', plane.databaseId, 'slow log'],
    queryFn: () => readSlowLog(plane),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const clear = () =>
    confirm({
      title: 'Clear the slow log',
      text: 'The entries are deleted. New slow commands are still recorded.',
      action: 'Clear the slow log',
      onConfirm: async () => {
        await plane.send('SLOWLOG', 'RESET')
        await refreshData(plane)
      },
    })
  return (
    <Panel
      flush
      title="Slow log"
      about="Commands that kept the engine busy for a long time. Time in the queue and in the network does not count."
      actions={
        <Group gap={6}>
          <Tooltip label="Refresh">
            <ActionIcon aria-label="Refresh the slow log" onClick={() => void log.refetch()}>
              <IconRefresh size={16} />
            </ActionIcon>
          </Tooltip>
          <Button size="compact-sm" variant="default" disabled={!log.data?.entries.length} onClick={clear}>
            Clear
          </Button>
        </Group>
      }
    >
      <Loaded query={log}>{(state) => <Entries plane={plane} state={state} />}</Loaded>
    </Panel>
  )
}

const COLUMNS: readonly Column<SlowCommand>[] = [
  { key: 'time', title: 'Time', width: '110px', render: ({ atMs }) => <When atMs={atMs} /> },
  { key: 'took', title: 'Took', width: '90px', align: 'right', render: ({ tookMs }) => duration(tookMs) },
  { key: 'command', title: 'Command', render: ({ text }) => <code title={text}>{text}</code> },
  { key: 'client', title: 'Client name', width: '140px', from: 'sm', render: ({ client }) => client || '–' },
]

function Entries({ plane, state }: { plane: DataPlane; state: SlowLogState }) {
  const { entries, slowerThanMs, most } = state
  return (
    <>
      <Group gap="xs" px="md" pb="sm">
        <Text size="sm" c="dimmed" role="status">
          {slowerThanMs === undefined ? 'Nothing is recorded' : `Recorded from ${duration(slowerThanMs)} on`}; the
          newest {counted(most, 'command')} are kept.
        </Text>
        <Threshold plane={plane} slowerThanMs={slowerThanMs} />
      </Group>
      <DataTable
        label="Slow commands"
        columns={COLUMNS}
        rows={entries}
        rowKey={({ id }) => id}
        maxHeight="calc(100dvh - 400px)"
        empty={
          <EmptyState title="No slow commands">
            No command has taken that long since the engine started or the log was cleared.
          </EmptyState>
        }
      />
    </>
  )
}

function Threshold({ plane, slowerThanMs }: { plane: DataPlane; slowerThanMs: number | undefined }) {
  const [isOpen, { toggle, close }] = useDisclosure()
  const [ms, setMs] = useState<number | ''>(slowerThanMs ?? 10)
  const set = useTask(
    (value: number) => plane.send('CONFIG', 'SET', 'slowlog-log-slower-than', Math.round(value * 1_000)),
    {
      onDone: () => {
        close()
        void refreshData(plane)
      },
    },
  )
  return (
    <Popover opened={isOpen} onChange={close} trapFocus withArrow>
      <Popover.Target>
        <Button size="compact-xs" variant="default" onClick={toggle}>
          Change
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (ms !== '') set.mutate(ms)
          }}
        >
          <Stack gap="sm" w={230}>
            <NumberInput
              label="Record commands that take at least (milliseconds)"
              description={
                <>
                  Sets <Term>slowlog-log-slower-than</Term>
                </>
              }
              min={0}
              decimalScale={3}
              value={ms}
              onChange={(value) => setMs(typeof value === 'number' ? value : '')}
            />
            <Button size="compact-sm" type="submit" disabled={ms === ''} loading={set.isPending} ml="auto">
              Set
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  )
}
