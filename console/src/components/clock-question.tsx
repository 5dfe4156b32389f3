import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core'
import { modals } from '@mantine/modals'
import { useState } from 'react'
import type { Endpoint } from '../../../src/contract/endpoint.js'
import { useTask } from '../api/hooks.js'
import { Refusal } from './states.js'
import { useHistoryNavigation } from './use-history-navigation.js'

/** One way to treat due times. */
export interface ClockChoice<Clock extends string> {
  readonly value: Clock
  readonly label: string
  readonly description: string
}

/** How a change treats due times, and why it is made. */
export interface ClockAnswer<Clock extends string> {
  readonly clock: Clock
  readonly reason?: string
}

/** A change of runs or messages that asks how to treat due times. */
export interface ClockQuestion<Clock extends string> {
  readonly title: string
  /** The consequences. */
  readonly text: string
  /** The verb on the button: `Bring the run back`. */
  readonly action: string
  /** What the choices are about. */
  readonly label: string
  /** The first one is chosen at the beginning. */
  readonly choices: readonly [ClockChoice<Clock>, ...ClockChoice<Clock>[]]
  readonly onAnswer: (answer: ClockAnswer<Clock>) => Promise<unknown>
  /** The notification after success; absent: none. */
  readonly done?: string
  /** Endpoints to read again afterwards. */
  readonly refreshes: readonly Pick<Endpoint, 'id'>[]
}

const MAX_REASON_LENGTH = 500

/** Asks how to treat due times, and for the reason of the change. */
export function askClock<Clock extends string>(question: ClockQuestion<Clock>): void {
  // Closes an earlier dialog, as `confirm` does.
  modals.closeAll()
  const id = modals.open({
    title: question.title,
    children: <Body question={question} onClose={() => modals.close(id)} />,
  })
}

function Body<Clock extends string>({ question, onClose }: { question: ClockQuestion<Clock>; onClose: () => void }) {
  const { text, action, label, choices, onAnswer, done, refreshes } = question
  const [clock, setClock] = useState(choices[0].value)
  const [reason, setReason] = useState('')
  const work = () => onAnswer({ clock, ...(reason.trim() !== '' && { reason: reason.trim() }) })
  const task = useTask(work, { refreshes, errors: 'inline', onDone: onClose, ...(done !== undefined && { done }) })
  // The dialog stays open while the change runs, so that it can show the error.
  useHistoryNavigation(() => task.isPending || onClose())
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        task.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {text}
        </Text>
        <Radio.Group
          label={label}
          value={clock}
          onChange={(chosen) => setClock(choices.find(({ value }) => value === chosen)?.value ?? choices[0].value)}
        >
          <Stack gap="xs" mt="xs">
            {choices.map((choice) => (
              <Radio key={choice.value} {...choice} />
            ))}
          </Stack>
        </Radio.Group>
        <TextInput
          label="Reason"
          description="Optional. Kept in the audit log"
          maxLength={MAX_REASON_LENGTH}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <Refusal error={task.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button type="submit" loading={task.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
