import IconArrowBackUp from 'icon:arrow-back-up'
import { Button, Group, Radio, Stack, Text } from '@mantine/core'
import { modals } from '@mantine/modals'
import { useState } from 'react'
import type { Static } from 'typebox'
import type { UndoClock } from '../../../src/contract/bulk/answers.js'
import type { Endpoint } from '../../../src/contract/endpoint.js'
import { useTask } from '../api/hooks.js'
import { Refusal } from './states.js'

/** When the deliveries that are brought back are due. */
export type Clock = Static<typeof UndoClock>

const CLOCKS: readonly (readonly [clock: Clock, label: string, description: string])[] = [
  ['original', 'At their original times', 'What was due while it was cancelled is sent at once.'],
  ['hold', 'Later, by the time it was cancelled', 'Sleeps and deadlines go on where they stopped.'],
  ['now', 'Now', 'Sleeps end at once. Waits for events keep their deadlines.'],
]

/** What is brought back, and how. */
export interface Undo {
  readonly title: string
  /** The consequences. */
  readonly text: string
  /** The verb on the button: `Bring the run back`. */
  readonly action: string
  readonly onUndo: (clock: Clock) => Promise<unknown>
  /** Endpoints to read again afterwards. */
  readonly refreshes: readonly Pick<Endpoint, 'id'>[]
}

/** Asks when the deliveries are due, then brings back what was cancelled. */
export function askUndo(undo: Undo): void {
  const id = modals.open({ title: undo.title, children: <UndoBody undo={undo} onClose={() => modals.close(id)} /> })
}

/** The button that brings back what was cancelled. */
export function UndoButton({ undo }: { undo: Undo }) {
  return (
    <Button variant="default" leftSection={<IconArrowBackUp size={16} />} onClick={() => askUndo(undo)}>
      Undo the cancel
    </Button>
  )
}

function UndoBody({ undo, onClose }: { undo: Undo; onClose: () => void }) {
  const [clock, setClock] = useState<Clock>('original')
  const task = useTask(() => undo.onUndo(clock), { refreshes: undo.refreshes, errors: 'inline', onDone: onClose })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        task.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm">{undo.text}</Text>
        <Radio.Group
          label="Deliveries are due"
          value={clock}
          onChange={(value) => setClock(CLOCKS.find(([known]) => known === value)?.[0] ?? 'original')}
        >
          <Stack gap="xs" mt="xs">
            {CLOCKS.map(([value, label, description]) => (
              <Radio key={value} value={value} label={label} description={description} />
            ))}
          </Stack>
        </Radio.Group>
        <Refusal error={task.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button type="submit" loading={task.isPending}>
            {undo.action}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
