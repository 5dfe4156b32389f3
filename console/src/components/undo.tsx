import IconArrowBackUp from 'icon:arrow-back-up'
import { Button } from '@mantine/core'
import type { Static } from 'typebox'
import type { UndoClock } from '../../../src/contract/bulk/answers.js'
import { askClock, type ClockQuestion } from './clock-question.js'

/** How an undo sets the due times of the deliveries. */
export type Clock = Static<typeof UndoClock>

/** The choices for the due times of the deliveries. */
export const UNDO_CLOCKS: ClockQuestion<Clock>['choices'] = [
  {
    value: 'original',
    label: 'At their original times',
    description: 'What was due while it was cancelled is sent at once.',
  },
  {
    value: 'hold',
    label: 'Later, by the time it was cancelled',
    description: 'Sleeps and deadlines continue where they stopped.',
  },
  { value: 'now', label: 'Now', description: 'Sleeps end at once. Waits for events keep their deadlines.' },
]

/** The question of an undo: what it brings back, and the call that does so. */
export type Undo = Omit<ClockQuestion<Clock>, 'label' | 'choices'>

/** Asks when the deliveries are due, then brings back what was cancelled. */
export const askUndo = (undo: Undo): void => askClock({ ...undo, label: 'Deliveries are due', choices: UNDO_CLOCKS })

/** The button that brings back what was cancelled. */
export function UndoButton({ undo }: { undo: Undo }) {
  return (
    <Button variant="default" leftSection={<IconArrowBackUp size={16} />} onClick={() => askUndo(undo)}>
      Undo the cancel
    </Button>
  )
}
