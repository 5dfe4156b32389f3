import { Alert, SegmentedControl, Stack } from '@mantine/core'
import { useState } from 'react'
import type { DatabaseRecord } from '../../../../../src/contract/databases/databases.js'
import { useDataPlane } from '../use-data-plane.js'
import { Browse } from './browse.js'
import { CommandBox } from './command-box.js'

const MODES = [
  { value: 'browse', label: 'Browse keys' },
  { value: 'commands', label: 'Send commands' },
] as const

type Mode = (typeof MODES)[number]['value']

/** The data of a database: the key browser and the command prompt. */
export function DataTab({ database }: { database: DatabaseRecord }) {
  const [mode, setMode] = useState<Mode>('browse')
  const plane = useDataPlane(database)
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label="Data tools"
        data={[...MODES]}
        value={mode}
        onChange={setMode}
        style={{ alignSelf: 'flex-start' }}
      />
      {plane.canWrite ? null : <Alert color="gray">Your key is read-only, so this page cannot change data.</Alert>}
      {mode === 'browse' ? <Browse plane={plane} /> : <CommandBox plane={plane} />}
    </Stack>
  )
}
