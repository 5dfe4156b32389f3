import { Button, UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'

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
