import { NumberInput, Radio, Select, Stack } from '@mantine/core'
import { useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { counted } from '../../../lib/format.js'
import { Examples, useEnd } from './delete-keys.js'
import { changeKeys } from './prefix.js'
import { refreshData } from './reads.js'

const UNITS = [
  { value: '1', label: 'seconds' },
  { value: '60', label: 'minutes' },
  { value: '3600', label: 'hours' },
  { value: '86400', label: 'days' },
] as const

interface ExpireKeysProps {
  readonly plane: DataPlane
  readonly names: readonly KeyName[]
  readonly isOpen: boolean
  readonly onClose: () => void
}

/** Sets the expiry of the selected keys, or removes it. */
export function ExpireKeys({ plane, names, isOpen, onClose }: ExpireKeysProps) {
  const end = useEnd()
  const [kind, setKind] = useState<'set' | 'remove'>('set')
  const [amount, setAmount] = useState<number | ''>(1)
  const [unit, setUnit] = useState<string>('3600')
  const seconds = kind === 'set' ? Number(amount) * Number(unit) : undefined
  const set = useTask(
    () =>
      changeKeys(
        names,
        (some) => plane.keys.expire(some, seconds),
        () => undefined,
        end,
      ),
    {
      errors: 'inline',
      done: ({ changed }) => doneText(changed, names.length, kind),
      onDone: () => {
        onClose()
        void refreshData(plane)
      },
    },
  )
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title={`Expiry of ${counted(names.length, 'key')}`}
      task={set}
      action={kind === 'set' ? 'Set the expiry' : 'Remove the expiry'}
      isReady={kind === 'remove' || Number(amount) >= 1}
      onSubmit={(event) => {
        event.preventDefault()
        set.mutate()
      }}
    >
      <Examples names={names} />
      <Radio.Group
        aria-label="Expiry"
        value={kind}
        onChange={(value) => setKind(value === 'remove' ? 'remove' : 'set')}
      >
        <Stack gap="xs">
          <Radio value="set" label="They expire after a time from now" />
          <Radio value="remove" label="They do not expire" />
        </Stack>
      </Radio.Group>
      {kind === 'set' ? (
        <Stack gap="xs">
          <NumberInput
            label="Expire after"
            min={1}
            allowDecimal={false}
            value={amount}
            onChange={(value) => setAmount(typeof value === 'number' ? value : '')}
          />
          <Select aria-label="Unit" data={[...UNITS]} value={unit} onChange={(value) => setUnit(value ?? '1')} />
        </Stack>
      ) : null}
    </FormDialog>
  )
}

function doneText(count: number, of: number, kind: 'set' | 'remove'): string {
  if (kind === 'remove') return `${counted(count, 'key')} had an expiry and ${count === 1 ? 'has' : 'have'} none now.`
  const gone = of - count
  const rest = gone === 0 ? '' : ` ${counted(gone, 'key does', 'keys do')} not exist any more.`
  return `${counted(count, 'key')} ${count === 1 ? 'expires' : 'expire'} now.${rest}`
}
