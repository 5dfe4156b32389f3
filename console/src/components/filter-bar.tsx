import IconSearch from 'icon:search'
import { Group, TextInput } from '@mantine/core'
import type { CSSProperties, ReactNode } from 'react'
import classes from './filter-bar.module.css'

/** The fields that filter a list. */
export function FilterGroup({ children }: { children: ReactNode }) {
  return (
    <Group gap="xs" wrap="wrap" className={classes.bar ?? ''}>
      {children}
    </Group>
  )
}

/** The style of a field in the bar: `widthPx` where there is space. */
export const barField = (widthPx: number): { className: string; style: CSSProperties } => ({
  className: classes.field ?? '',
  style: { '--field-width': `${widthPx}px` } as CSSProperties,
})

/** The search field of the page. */
export function SearchBox({
  label,
  value,
  onChange,
}: {
  label: string
  value: string
  onChange: (value: string) => void
}) {
  return (
    <TextInput
      data-search
      aria-label={label}
      placeholder={label}
      size="xs"
      {...barField(240)}
      leftSection={<IconSearch size={14} />}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}
