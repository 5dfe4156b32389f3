import IconPlayerPlay from 'icon:player-play'
import IconPlayerStop from 'icon:player-stop'
import { Alert, Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Refusal } from '../../../components/states.js'
import { counted, whole } from '../../../lib/format.js'
import { MAX_COMMAND_LENGTH, type MonitoredCommand, Profile, type ProfileCounts } from './monitor-lines.js'

const DURATIONS = [
  { value: '10', label: '10 seconds' },
  { value: '30', label: '30 seconds' },
  { value: '60', label: '1 minute' },
  { value: '300', label: '5 minutes' },
] as const
const LENGTHS = [
  { value: '500', label: '500 commands' },
  { value: '2000', label: '2,000 commands' },
  { value: '10000', label: '10,000 commands' },
] as const
const SHOWN_EVERY_MS = 250

type Phase = 'idle' | 'running' | 'ended' | 'failed'

interface Shown {
  readonly commands: readonly MonitoredCommand[]
  readonly counts: ProfileCounts
}

const NOTHING: Shown = { commands: [], counts: { seen: 0, matched: 0, dropped: 0, cut: 0 } }

/** Shows the commands that the database executes, for a limited time (MONITOR). */
export function Profiler({ plane }: { plane: DataPlane }) {
  const [filter, setFilter] = useState('')
  const [seconds, setSeconds] = useState<string>('30')
  const [most, setMost] = useState<string>('2000')
  const { phase, shown, error, start, stop } = useProfile(plane)
  const isRunning = phase === 'running'
  return (
    <Panel
      title="Profiler"
      about="Every command that the database executes, from all clients. It slows the database down while it runs."
    >
      <Stack gap="sm">
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (isRunning) stop()
            else void start({ filter, most: Number(most), seconds: Number(seconds) })
          }}
        >
          <Group gap="xs" align="flex-end">
            <TextInput
              data-search
              label="Filter"
              placeholder="Command, key or address"
              size="xs"
              flex="1 1 200px"
              disabled={isRunning}
              value={filter}
              onChange={(event) => setFilter(event.currentTarget.value)}
            />
            <Select
              label="Ends after"
              size="xs"
              w={120}
              data={[...DURATIONS]}
              disabled={isRunning}
              value={seconds}
              onChange={(value) => setSeconds(value ?? '30')}
            />
            <Select
              label="Keeps the newest"
              size="xs"
              w={150}
              data={[...LENGTHS]}
              disabled={isRunning}
              value={most}
              onChange={(value) => setMost(value ?? '2000')}
            />
            <Button
              type="submit"
              size="xs"
              variant={isRunning ? 'default' : 'filled'}
              leftSection={isRunning ? <IconPlayerStop size={14} /> : <IconPlayerPlay size={14} />}
            >
              {isRunning ? 'Stop' : 'Start'}
            </Button>
          </Group>
        </form>
        <Refusal error={error} />
        {phase === 'idle' ? (
          <EmptyState title="Not started">Start the profiler, then use the database.</EmptyState>
        ) : (
          <Result shown={shown} phase={phase} />
        )}
      </Stack>
    </Panel>
  )
}

interface Asked {
  readonly filter: string
  readonly most: number
  readonly seconds: number
}

function useProfile(plane: DataPlane) {
  const [phase, setPhase] = useState<Phase>('idle')
  const [shown, setShown] = useState<Shown>(NOTHING)
  const [error, setError] = useState<Error | null>(null)
  const end = useRef(new AbortController())
  // Leaving the page ends the profile.
  useEffect(() => () => end.current.abort(), [])
  const start = async ({ filter, most, seconds }: Asked) => {
    const profile = new Profile(filter, most)
    const show = () => setShown({ commands: profile.commands(), counts: profile.counts })
    end.current = new AbortController()
    const { signal } = end.current
    const timer = setTimeout(() => end.current.abort(), seconds * 1_000)
    const shows = setInterval(show, SHOWN_EVERY_MS)
    setError(null)
    setPhase('running')
    show()
    try {
      for await (const chunk of plane.monitor(signal)) profile.take(chunk)
      setPhase('ended')
      setError(new Error('The database ended the profile. It may have been restarted.'))
    } catch (problem) {
      setPhase(signal.aborted ? 'ended' : 'failed')
      if (!signal.aborted) setError(problem instanceof Error ? problem : new Error(String(problem)))
    } finally {
      clearTimeout(timer)
      clearInterval(shows)
      show()
    }
  }
  return { phase, shown, error, start, stop: () => end.current.abort() }
}

const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

const COLUMNS: readonly Column<MonitoredCommand>[] = [
  { key: 'time', title: 'Time', width: '132px', render: ({ atMs }) => clock.format(atMs) },
  { key: 'source', title: 'Client', width: '170px', from: 'sm', render: ({ source }) => source },
  {
    key: 'command',
    title: 'Command',
    render: ({ text }) => <code title={text}>{text}</code>,
  },
]

function Result({ shown: { commands, counts }, phase }: { shown: Shown; phase: Phase }) {
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed" role="status">
        {countsText(counts, phase)}
      </Text>
      {counts.cut > 0 ? (
        <Alert color="gray">
          {counted(counts.cut, 'command is', 'commands are')} shown up to {whole(MAX_COMMAND_LENGTH)} characters.
        </Alert>
      ) : null}
      <DataTable
        label="Commands"
        columns={COLUMNS}
        rows={commands}
        rowKey={({ id }) => String(id)}
        maxHeight="calc(100dvh - 480px)"
        empty={<EmptyState title={counts.seen === 0 ? 'No command yet' : 'No command matches the filter'} />}
      />
    </Stack>
  )
}

/** The counts in words: commands seen, and why some of them are not on the page. */
function countsText({ seen, matched, dropped }: ProfileCounts, phase: Phase): string {
  const head = phase === 'running' ? 'Running' : 'Ended'
  const other = seen - matched
  const rest = [
    other > 0 && `${whole(other)} did not match the filter`,
    dropped > 0 && `${whole(dropped)} older ones were dropped`,
  ].filter((text) => text !== false)
  return [`${head}: ${counted(seen, 'command')} seen`, ...rest].join(', ')
}
