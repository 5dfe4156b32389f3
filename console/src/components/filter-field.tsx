import { TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import { type Format, isWrong } from '../lib/search.js'
import { barField } from './filter-bar.js'

const TYPING_MS = 400

/** A filter field of a list: its text goes into the URL a moment after the last key. */
export function FilterField({
  label,
  value,
  onChange,
  isSearch = false,
  width = 200,
  format,
}: {
  label: string
  value: string | undefined
  /** `undefined`: the filter is empty. */
  onChange: (value: string | undefined) => void
  /** The shortcut `/` focuses this field. */
  isSearch?: boolean
  width?: number
  /** A text that does not have this format is marked, because the list is not filtered by it. */
  format?: Format
}) {
  const [typed, setTyped] = useState(value ?? '')
  const reported = useRef(value)
  const change = useDebouncedCallback((text: string) => {
    reported.current = text.trim() === '' ? undefined : text.trim()
    onChange(reported.current)
  }, TYPING_MS)
  useEffect(() => {
    // The filter was changed elsewhere, for example by the back button.
    if (value !== reported.current) setTyped(value ?? '')
    reported.current = value
  }, [value])
  return (
    <TextInput
      {...(isSearch ? { 'data-search': true } : {})}
      aria-label={label}
      placeholder={label}
      size="xs"
      {...barField(width)}
      {...(format !== undefined && isWrong(typed, format) && { error: true, title: format.enter })}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        change(event.currentTarget.value)
      }}
    />
  )
}
