import IconDots from 'icon:dots'
import { ActionIcon, Menu } from '@mantine/core'
import { useRef } from 'react'

/** An action on a row. */
export interface RowAction {
  readonly label: string
  readonly onClick: () => void
  readonly isDangerous?: boolean
  readonly isDisabled?: boolean
}

/** A file that belongs to a row. */
export interface RowFile {
  readonly label: string
  readonly href: string
  /** The file name of the download. */
  readonly download: string
  readonly isDisabled?: boolean
}

/** The menu of actions on a row. */
export function RowMenu({ of, actions }: { of: string; actions: readonly (RowAction | RowFile)[] }) {
  const button = useRef<HTMLButtonElement>(null)
  if (actions.length === 0) return null
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <ActionIcon ref={button} aria-label={`Actions for ${of}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map((action) => (
          <Line key={action.label} action={action} onLeave={() => button.current?.focus()} />
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

/** `onLeave` moves the focus away from the menu item, which disappears: a dialog returns the focus to its last element. */
function Line({ action, onLeave }: { action: RowAction | RowFile; onLeave: () => void }) {
  const { label, isDisabled = false } = action
  if ('href' in action) {
    const { href, download } = action
    return (
      <Menu.Item component="a" href={href} download={download} disabled={isDisabled}>
        {label}
      </Menu.Item>
    )
  }
  return (
    <Menu.Item
      disabled={isDisabled}
      onClick={() => {
        onLeave()
        action.onClick()
      }}
      {...(action.isDangerous === true ? { c: 'var(--mantine-color-error)' } : {})}
    >
      {label}
    </Menu.Item>
  )
}
