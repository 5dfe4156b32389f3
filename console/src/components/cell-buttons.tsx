import { Box, Button, Group, UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'
import { type RowAction, RowMenu } from './row-menu.js'

/** The name of a row as the button that opens it: the keyboard cannot click a row. */
export function CellButton({ onClick, title, children }: { onClick: () => void; title?: string; children: ReactNode }) {
  return (
    <UnstyledButton
      fz="sm"
      c="var(--mantine-color-anchor)"
      className="truncate"
      maw="100%"
      onClick={onClick}
      {...(title !== undefined && { title })}
    >
      {children}
    </UnstyledButton>
  )
}

/** Deletes a row, after a confirmation. `of` names the row for screen readers. */
export function CellDanger({ verb, of, onClick }: { verb: string; of: string; onClick: () => void }) {
  return (
    <Button
      size="compact-xs"
      variant="subtle"
      color="red.9"
      c="var(--mantine-color-error)"
      onClick={onClick}
      aria-label={`${verb} ${of}`}
    >
      {verb}
    </Button>
  )
}

/** Actions on a row: buttons, and on phones one menu. The column has `isMenuOnPhones`. `of` names the row. */
export function CellActions({ of, actions }: { of: string; actions: readonly RowAction[] }) {
  return (
    <>
      <Group visibleFrom="xs" gap={4} justify="flex-end" wrap="nowrap">
        {actions.map(({ label, onClick, isDangerous }) =>
          isDangerous === true ? (
            <CellDanger key={label} verb={label} of={of} onClick={onClick} />
          ) : (
            <Button key={label} size="compact-xs" variant="subtle" onClick={onClick} aria-label={`${label} ${of}`}>
              {label}
            </Button>
          ),
        )}
      </Group>
      <Box hiddenFrom="xs">
        <RowMenu of={of} actions={actions} />
      </Box>
    </>
  )
}
