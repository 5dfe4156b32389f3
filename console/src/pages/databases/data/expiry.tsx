import { Badge, Button, Group, NumberInput, Popover, Stack } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { useNow } from '../../../components/when.js'
import { duration } from '../../../lib/format.js'
import { refreshData } from './reads.js'

/** The expiry of a key, and the form that changes it. */
export function Expiry({
  plane,
  name,
  expiresAtMs,
}: {
  plane: DataPlane
  name: string
  /** Unix milliseconds; `undefined`: never. */
  expiresAtMs: number | undefined
}) {
  const [isOpen, { toggle, close }] = useDisclosure()
  const now = useNow()
  const ttlMs = expiresAtMs === undefined ? undefined : Math.max(0, expiresAtMs - now)
  const text = ttlMs === undefined ? 'does not expire' : `expires in ${duration(ttlMs)}`
  if (!plane.canWrite) return <Badge variant="default">{text}</Badge>
  return (
    <Popover opened={isOpen} onChange={close} trapFocus withArrow>
      <Popover.Target>
        <Button size="compact-xs" variant="default" onClick={toggle}>
          {text}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <ExpiryForm plane={plane} name={name} ttlMs={ttlMs} onDone={close} />
      </Popover.Dropdown>
    </Popover>
  )
}

interface ExpiryFormProps {
  readonly plane: DataPlane
  readonly name: string
  readonly ttlMs: number | undefined
  readonly onDone: () => void
}

function ExpiryForm({ plane, name, ttlMs, onDone }: ExpiryFormProps) {
  const [seconds, setSeconds] = useState<number | ''>(ttlMs === undefined ? '' : Math.ceil(ttlMs / 1000))
  const set = useTask(
    (ttl: number | undefined) => plane.send(...(ttl === undefined ? ['PERSIST', name] : ['EXPIRE', name, ttl])),
    {
      onDone: () => {
        onDone()
        void refreshData(plane)
      },
    },
  )
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (seconds !== '') set.mutate(seconds)
      }}
    >
      <Stack gap="sm" w={220}>
        <NumberInput
          label="Expires in seconds"
          min={1}
          allowDecimal={false}
          value={seconds}
          onChange={(value) => setSeconds(typeof value === 'number' ? value : '')}
        />
        <Group justify="space-between">
          <Button
            size="compact-sm"
            variant="default"
            disabled={ttlMs === undefined}
            onClick={() => set.mutate(undefined)}
          >
            Never
          </Button>
          <Button size="compact-sm" type="submit" disabled={seconds === ''} loading={set.isPending}>
            Set
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
