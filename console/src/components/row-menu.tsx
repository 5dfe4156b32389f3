import IconDots from 'icon:dots'
import { ActionIcon, Menu } from '@mantine/core'

/** Something that can be done with a row. */
export interface RowAction {
  readonly label: string
  readonly onClick: () => void
  readonly isDangerous?: boolean
}

/** What can be done with a row of a table, behind one button. */
export function RowMenu({ of, actions }: { of: string; actions: readonly RowAction[] }) {
  if (actions.length === 0) return null
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <ActionIcon aria-label={`Actions for ${of}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map(({ label, onClick, isDangerous = false }) => (
          <Menu.Item key={label} onClick={onClick} {...(isDangerous ? { c: 'var(--mantine-color-error)' } : {})}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
