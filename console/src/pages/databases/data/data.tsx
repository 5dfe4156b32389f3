import { Alert, SegmentedControl, Stack } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { DatabaseRecord } from '../../../../../src/contract/databases.js'
import { DataPlane } from '../../../api/data-plane.js'
import { useSession } from '../../../api/session.js'
import { Browse } from './browse.js'
import { CommandBox } from './command-box.js'

const MODES = [
  { value: 'browse', label: 'Browse keys' },
  { value: 'commands', label: 'Send commands' },
] as const

type Mode = (typeof MODES)[number]['value']

/** What is in a database: its keys, and a place to send commands. */
export function DataTab({ database }: { database: DatabaseRecord }) {
  const [mode, setMode] = useState<Mode>('browse')
  const plane = useDataPlane(database)
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label="What to do"
        data={[...MODES]}
        value={mode}
        onChange={setMode}
        style={{ alignSelf: 'flex-start' }}
      />
      {plane.canWrite ? null : <Alert color="gray">Your key may only read, and so may everything on this page.</Alert>}
      {mode === 'browse' ? <Browse plane={plane} /> : <CommandBox plane={plane} />}
    </Stack>
  )
}

/** One connection for as long as the credentials stay the same: it remembers what it has written. */
function useDataPlane(database: DatabaseRecord): DataPlane {
  const { access } = useSession()
  const { database_id, rest_url, rest_token, read_only_rest_token } = database
  // biome-ignore lint/correctness/useExhaustiveDependencies: the record is read again and again; only these fields matter.
  return useMemo(
    () => new DataPlane(database, access),
    [database_id, rest_url, rest_token, read_only_rest_token, access],
  )
}
