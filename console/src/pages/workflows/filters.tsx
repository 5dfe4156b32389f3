import IconChevronDown from 'icon:chevron-down'
import IconChevronUp from 'icon:chevron-up'
import { Button, Text, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { barField, FilterGroup } from '../../components/filter-bar.js'

const OFFSET_MS = 60_000

/** A time in the format of the browser's field: local, to the second. */
function localText(atMs: number): string {
  const local = atMs - new Date(atMs).getTimezoneOffset() * OFFSET_MS
  return new Date(local).toISOString().slice(0, 19)
}

function momentOf(text: string): number | undefined {
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : atMs
}

/** A field for a date and time. `value` is Unix milliseconds. */
export function MomentField({
  label,
  value,
  onChange,
  size = 'xs',
}: {
  label: string
  value: number | undefined
  onChange: (value: number | undefined) => void
  size?: 'xs' | 'sm'
}) {
  const [typed, setTyped] = useState('')
  // Keeps the typed text as long as it means the same as the value. The back button may change the value, too.
  const shown = momentOf(typed) === value ? typed : value === undefined ? '' : localText(value)
  return (
    <TextInput
      type="datetime-local"
      step={1}
      {...(size === 'sm'
        ? { label }
        : {
            'aria-label': label,
            leftSection: <Text size="xs">{label}</Text>,
            leftSectionWidth: 16 + 7 * label.length,
          })}
      size={size}
      {...(size === 'sm' ? { w: '100%' } : barField(235))}
      value={shown}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        onChange(momentOf(event.currentTarget.value))
      }}
    />
  )
}

/** The main filters, and a button for the others. */
export function FilterBar({
  more,
  isMoreUsed,
  children,
}: {
  more: ReactNode
  isMoreUsed: boolean
  children: ReactNode
}) {
  const [isOpen, setOpen] = useState(isMoreUsed)
  return (
    <FilterGroup>
      {children}
      {isOpen ? more : null}
      <Button
        size="compact-sm"
        variant="subtle"
        aria-expanded={isOpen}
        rightSection={isOpen ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />}
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen ? 'Fewer filters' : 'More filters'}
      </Button>
    </FilterGroup>
  )
}
