import IconKey from 'icon:key'
import { Alert, SegmentedControl, Select, Stack } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useState } from 'react'
import type { DatabaseRecord } from '../../../../../src/contract/databases/databases.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { Panel } from '../../../components/page.js'
import { EmptyState } from '../../../components/states.js'
import { useDataPlane } from '../use-data-plane.js'
import { hasCredentials } from '../words.js'
import { Browse } from './browse.js'
import { CommandBox } from './command-box.js'
import { Memory } from './memory.js'
import { Profiler } from './profiler.js'
import { SlowLog } from './slow-log.js'

const MODES = [
  { value: 'browse', label: 'Browse keys' },
  { value: 'commands', label: 'Send commands' },
  { value: 'memory', label: 'Memory' },
  { value: 'profiler', label: 'Profiler' },
  { value: 'slow', label: 'Slow log' },
] as const

type Mode = (typeof MODES)[number]['value']

/** Tools that need the read-write token: the read-only one cannot list keys or see commands of other clients. */
const FOR_WRITERS: ReadonlySet<Mode> = new Set(['memory', 'profiler', 'slow'])

/** The data of a database: the key browser, the command prompt, and tools that show what the engine does. */
export function DataTab({ database }: { database: DatabaseRecord }) {
  if (hasCredentials(database)) return <DataTools database={database} />
  return (
    <Panel>
      <EmptyState title="Your role sees no data" icon={IconKey}>
        The role finance sees what databases cost, not what they hold.
      </EmptyState>
    </Panel>
  )
}

function DataTools({ database }: { database: DatabaseRecord }) {
  const [mode, setMode] = useState<Mode>('browse')
  const plane = useDataPlane(database)
  const modes = MODES.filter(({ value }) => plane.canWrite || !FOR_WRITERS.has(value))
  return (
    <Stack gap="md">
      <Tools modes={modes} mode={mode} onMode={setMode} />
      {plane.canWrite ? null : <Alert color="gray">Your key is read-only, so this page cannot change data.</Alert>}
      <Tool mode={mode} plane={plane} database={database.database_name} />
    </Stack>
  )
}

interface ToolsProps {
  readonly modes: readonly (typeof MODES)[number][]
  readonly mode: Mode
  readonly onMode: (mode: Mode) => void
}

/** The choice of the tool: a row of buttons, or a menu on phones, which are too narrow. */
function Tools({ modes, mode, onMode }: ToolsProps) {
  const isWide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  if (isWide)
    return (
      <SegmentedControl
        aria-label="Data tools"
        data={[...modes]}
        value={mode}
        onChange={onMode}
        style={{ alignSelf: 'flex-start' }}
      />
    )
  return (
    <Select
      aria-label="Data tools"
      data={[...modes]}
      value={mode}
      onChange={(value) => onMode(MODES.find((known) => known.value === value)?.value ?? 'browse')}
    />
  )
}

function Tool({ mode, plane, database }: { mode: Mode; plane: DataPlane; database: string }) {
  switch (mode) {
    case 'browse':
      return <Browse plane={plane} database={database} />
    case 'commands':
      return <CommandBox plane={plane} />
    case 'memory':
      return <Memory plane={plane} />
    case 'profiler':
      return <Profiler plane={plane} />
    case 'slow':
      return <SlowLog plane={plane} />
  }
}
